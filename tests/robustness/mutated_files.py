"""Read mutated files with every reader; each file must be read, or refused with a SurelabelError.

    python tests/robustness/mutated_files.py --long                 # 1,000 files per reader
    python tests/robustness/mutated_files.py --trials 200 index     # one reader

The trials of a reader run in a child process with a limit of memory. Another exception, a message
with several lines, a wrong result, a crash, or a trial that takes longer than ``SECONDS`` fails.
Equal numbers of trials make equal mutations.
"""

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # for the script

import numpy as np
import torch
from file_mutations import mutate_file
from PIL import Image
from torch import nn

from surelabel.bench.result_cache import ResultCache
from surelabel.config import load_run
from surelabel.data import (
    find_images,
    label_captions,
    read_captions,
    read_feature_archive,
    read_graded_relevance,
    read_labels,
    read_pair_archive,
    read_pairs,
    read_predictions,
    read_relevance,
    relevant_captions,
    remove_sidecar_tags,
    write_predictions,
    write_sidecar_tags,
)
from surelabel.data.label_names import parse_label_names, read_label_names
from surelabel.data.labels import csv, jsonl
from surelabel.data.scene_files import read_scenes
from surelabel.data.scene_writing import write_scenes
from surelabel.encoders import load_encoder
from surelabel.encoders.embedded import embedded_weights
from surelabel.encoders.image_inputs.out_of_distribution import (
    OODDetector,
    load_ood_detector,
    save_ood_detector,
)
from surelabel.encoders.prompts.templates import prompt_templates
from surelabel.errors import SurelabelError
from surelabel.features.cache import FeatureCache
from surelabel.recognizer import Recognizer
from surelabel.records import Captions, LabelledImages, Pairs, Predictions, SkippedImage
from surelabel.retrieval import Index
from surelabel.training import Checkpoint

SECONDS = 20.0  # of one trial
MEMORY = 2 * 2**30  # bytes that the trials of a reader may use in addition
SAVED = Path(__file__).parents[1] / "saved" / "0.1.0"
SIDECARS = Path(__file__).parents[1] / "data" / "sidecars"
NAMES = ["dog", "hot dog", "süße 🍎"]
N_IMAGES = 12


@dataclass(frozen=True)
class MutatedReader:
    """Reader of files, and how the files are made.

    Attributes:
        write: Function that writes the files to an empty folder.
        read: Function that reads the files of a folder and returns what was read.
        suffixes: Suffixes of the files that are mutated; if empty, all files are mutated.
        checksummed: Suffixes of the files with checksums: if they were changed, another result than
            that of the unchanged files is an error.
    """

    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    suffixes: tuple[str, ...] = ()
    checksummed: tuple[str, ...] = ()


def example_predictions():
    generator = np.random.default_rng(0)
    logits = (3 * generator.standard_normal((N_IMAGES, len(NAMES)))).astype(np.float32)
    return Predictions(
        paths=[f"images/{row}.jpg" for row in range(N_IMAGES)],
        names=NAMES,
        scores=logits / 10,
        logits=logits,
        calibration="platt on 500 images",
        model="abc123",
        features=generator.standard_normal((N_IMAGES, 6)).astype(np.float16),
        skipped=(SkippedImage("images/broken.jpg", "empty file"),),
    )


def write_predictions_as(suffix):
    return lambda folder: write_predictions(example_predictions(), folder / f"tags{suffix}")


def read_predictions_as(suffix):
    def read(folder):
        predictions = read_predictions(folder / f"tags{suffix}")
        repr(predictions)
        write_predictions(predictions, folder / "again.parquet")

    return read


def write_index(folder):
    Index.create(folder / "index", example_predictions())


def search_index(folder):
    index = Index.open(folder / "index")
    hits = index.search('dog & !"hot dog"', k=N_IMAGES)
    index.status()
    return [(Path(hit.path).name, hit.probability) for hit in hits]


def write_labelled_images(folder, paths=tuple(f"{row}.png" for row in range(4))):
    for path in paths:
        Image.new("RGB", (2, 2)).save(folder / path)
    targets = np.random.default_rng(0).integers(0, 2, (len(paths), len(NAMES))).astype(float)
    return LabelledImages([str(folder / path) for path in paths], NAMES, targets)


def write_long_csv(folder):
    write_labelled_images(folder)
    (folder / "labels.csv").write_text("path,label\n0.png,dog;cat\n1.png,\n2.png,hot dog\n")


def write_coco(folder):
    write_labelled_images(folder)
    (folder / "labels.json").write_text(
        '{"images": [{"id": 1, "file_name": "0.png"}, {"id": 2, "file_name": "1.png"}],'
        '"categories": [{"id": 7, "name": "dog"}, {"id": 9, "name": "cat"}],'
        '"annotations": [{"image_id": 1, "category_id": 7}, {"image_id": 2, "category_id": 9}]}'
    )


def write_voc(folder):
    write_labelled_images(folder)
    for row in range(2):
        (folder / f"{row}.xml").write_text(
            f"<annotation><filename>{row}.png</filename><object><name>dog</name>"
            "<difficult>0</difficult></object></annotation>"
        )


def write_sidecars(folder):
    """Write images with sidecars of other programs."""
    write_labelled_images(folder, ("0.png", "1.png", "2.png"))
    for number, file in enumerate(sorted(SIDECARS.glob("*.xmp"))):
        shutil.copy(file, folder / f"{number}.xmp")


def change_sidecars(folder):
    """Add tags to sidecars, remove the tags, and return the keywords of the user.

    A sidecar that was refused must be unchanged, and each other one must have its previous bytes.
    """
    paths = [str(folder / f"{number}.png") for number in range(3)]
    before = {file: read_if_regular(file) for file in sorted(folder.glob("*.xmp"))}
    shown = np.ones((3, len(NAMES)), bool)
    logits = np.zeros(shown.shape, np.float32)
    tags = Predictions(paths, NAMES, logits, logits, "platt", shown=shown)
    refused = {Path(image.path) for image in write_sidecar_tags(tags, "stem").refused}
    changed = {file for file, data in before.items() if read_if_regular(file) != data}
    assert not refused & changed, "a refused sidecar was changed"
    assert not remove_sidecar_tags(paths, "stem").refused[len(refused) :]
    assert {file: read_if_regular(file) for file in before} == before, "removal restores no bytes"
    return read_labels(f"xmp:{folder}").targets.tolist()


def read_if_regular(file):
    is_regular = file.is_file() and not file.is_symlink()
    return file.read_bytes() if is_regular else None


def write_captions(folder):
    """Write captions in every format, and a word list."""
    (folder / "captions.json").write_text(
        '{"images": [{"id": 1, "file_name": "0.png"}, {"id": 2, "file_name": "1.png"}],'
        '"annotations": [{"image_id": 1, "caption": "a dog"}, {"image_id": 2, "caption": "cats"}]}'
    )
    (folder / "captions.csv").write_text('image,caption\n0.png,"a dog, a cat"\n1.png,cats\n')
    (folder / "captions.jsonl").write_text('{"path": "0.png", "captions": [{"text": "a dog"}]}\n')
    (folder / "captions.txt").write_text("a dog\ntwo cats\n")
    (folder / "words.tsv").write_text(
        "label\tsynonyms\tkinds\texceptions\ndog\thound\tpuppy\thot dog\ncat\n"
    )


def read_all_captions(folder):
    readers = [
        lambda file=file: label_captions(read_captions(file), ["dog", "cat"])
        for file in sorted(folder.glob("captions.*"))
    ]
    dogs = Captions(["a hot dog and a dog"])
    for read in (*readers, lambda: label_captions(dogs, ["dog"], word_list=folder / "words.tsv")):
        try:
            read()
        except SurelabelError as error:
            check_message(error)


PAIR_FILES = {
    "coco.json": '{"images": [{"id": 4, "file_name": "0.png"}, {"id": 7, "file_name": "1.png"}], '
    '"annotations": [{"id": 1, "image_id": 4, "caption": "a dog"}, '
    '{"id": 2, "image_id": 7, "caption": "cats"}]}',
    "pairs.csv": 'image,caption\n0.png,"a dog, a cat"\n1.png,cats\n',
    "pairs.jsonl": '{"image": "0.png", "captions": ["a dog", "cats"], "caption_ids": [1, "x"], '
    '"image_id": 4}\n',
    "scenes.jsonl": '{"path": "0.png", "labels": ["dog", "cat"], "captions": [{"text": "a dog", '
    '"mentions": ["dog"]}]}\n{"path": "1.png", "labels": ["cat"], "captions": [{"text": "both", '
    '"mentions": ["dog", "cat"]}]}\n',
    "flickr.token": "0.png#0\ta dog\n0.png#1\ttwo cats\n",
    "relevance.json": '{"4": [1, 2], "7": [2]}',
    "graded.csv": "image_id,caption_id,relevance\n4,1,1\n7,2,0.25\n",
}


def write_pairs(folder):
    """Write images with captions in every format, both forms of relevance, and an archive."""
    for name, text in PAIR_FILES.items():
        (folder / name).write_text(text)
    for name in ("0.png", "1.png"):
        Image.new("RGB", (4, 4)).save(folder / name)
    np.savez(
        folder / "pairs.npz",
        image_features=np.eye(2, 4),
        text_features=np.eye(3, dtype=np.float32),
        image_rows=np.array([0, 1, 1]),
    )


def read_all_pairs(folder):
    pairs = Pairs(["0.png", "1.png"], ["a dog", "cats"], [0, 1], [4, 7], [1, 2])
    readers = [
        lambda file=file: read_pairs(file).take([0]).with_noise(0.5, seed=0)
        for file in sorted(folder.glob("*.*"))
        if file.suffix not in (".npz", ".png")
    ]
    for read in (
        *readers,
        lambda: relevant_captions(pairs, read_relevance(folder / "relevance.json")),
        lambda: read_graded_relevance(folder / "graded.csv", pairs),
        lambda: read_pair_archive(folder / "pairs.npz"),
    ):
        try:
            read()
        except SurelabelError as error:
            check_message(error)


def write_feature_archive(folder):
    generator = np.random.default_rng(0)
    arrays = {
        "features": generator.standard_normal((8, 4)).astype(np.float32),
        "targets": generator.integers(0, 2, (8, 2)).astype(float),
        "names": np.array(["dog", "cat"]),
        "part": np.array(["train", "test"] * 4),
    }
    np.savez_compressed(folder / "vectors.npz", **arrays)


def checkpoint_state():
    torch.manual_seed(0)
    method = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(method.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    method(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    schedule.step()
    generator = torch.Generator().manual_seed(0)
    return {"method": method, "optimizer": optimizer, "schedule": schedule, "generator": generator}


def checkpoint(folder):
    return Checkpoint(folder / "run.safetensors", run_id="run")


def cached_arrays():
    generator = np.random.default_rng(0)
    return {f"{i:032x}": generator.standard_normal(5).astype(np.float16) for i in range(20)}


def write_cache(folder):
    FeatureCache(folder / "cache").put("encoder", "images", cached_arrays())


def read_cache(folder):
    """Return nothing, because a damaged array is computed again; a wrong array is an error."""
    arrays = cached_arrays()
    for key, array in FeatureCache(folder / "cache").get("encoder", "images", arrays).items():
        np.testing.assert_array_equal(array, arrays[key])


def write_recognizer(folder):
    Recognizer.load(SAVED / "recognizers" / "linear").save(folder / "recognizer")


def read_recognizer(folder):
    recognizer = Recognizer.load(folder / "recognizer")
    repr(recognizer)
    return recognizer.fingerprint, recognizer.names


def write_encoder(folder):
    load_encoder("tiny-vit").save(folder / "encoder")


def write_result_cache(folder):
    read_result_cache(folder)


def read_result_cache(folder):
    results = ResultCache(folder)
    results.load_or_compute("json", compute=lambda: {"ap": [0.5, float("nan")]})
    results.load_or_compute_arrays("npz", shapes={"x": (3,)}, compute=lambda: {"x": np.ones(3)})


def write_names(folder):
    (folder / "names.txt").write_text("dog\nsofa|couch\nhot dog\n")


def read_lists(folder):
    for read in (
        lambda file: parse_label_names(read_label_names(file)),
        lambda file: find_images([file]),
        lambda file: prompt_templates(file),
    ):
        try:
            read(folder / "names.txt")
        except SurelabelError as error:
            check_message(error)


def write_ood_detector(folder):
    detector = OODDetector(torch.zeros(4), torch.eye(4), [1.0] * 7)
    save_ood_detector(detector, "abc", folder / "ood.safetensors")


READERS = {
    "run file": MutatedReader(
        lambda folder: (folder / "run.toml").write_bytes((SAVED / "run.toml").read_bytes()),
        lambda folder: load_run(folder / "run.toml"),
    ),
    "predictions.parquet": MutatedReader(
        write_predictions_as(".parquet"), read_predictions_as(".parquet")
    ),
    "predictions.csv": MutatedReader(write_predictions_as(".csv"), read_predictions_as(".csv")),
    "predictions.jsonl": MutatedReader(
        write_predictions_as(".jsonl"), read_predictions_as(".jsonl")
    ),
    "labels wide.csv": MutatedReader(
        lambda folder: csv.write(write_labelled_images(folder), folder / "labels.csv"),
        lambda folder: read_labels(folder / "labels.csv"),
        (".csv",),
    ),
    "labels long.csv": MutatedReader(
        write_long_csv, lambda folder: read_labels(folder / "labels.csv"), (".csv",)
    ),
    "labels.jsonl": MutatedReader(
        lambda folder: jsonl.write(write_labelled_images(folder), folder / "labels.jsonl"),
        lambda folder: read_labels(folder / "labels.jsonl"),
        (".jsonl",),
    ),
    "labels coco": MutatedReader(
        write_coco, lambda folder: read_labels(folder / "labels.json"), (".json",)
    ),
    "labels voc": MutatedReader(write_voc, read_labels, (".xml",)),
    "sidecars": MutatedReader(write_sidecars, change_sidecars, (".xmp",)),
    "captions": MutatedReader(write_captions, read_all_captions),
    "pairs": MutatedReader(
        write_pairs,
        read_all_pairs,
        (".json", ".csv", ".jsonl", ".token", ".npz"),
    ),
    "feature archive": MutatedReader(
        write_feature_archive, lambda folder: read_feature_archive(folder / "vectors.npz")
    ),
    "scenes": MutatedReader(
        lambda folder: write_scenes(folder / "scenes", count=3, seed=0, pixels=16),
        lambda folder: (
            read_scenes(folder / "scenes"),
            read_labels(folder / "scenes" / "labels.csv"),
        ),
        (".json", ".jsonl", ".csv"),
    ),
    "checkpoint": MutatedReader(
        lambda folder: checkpoint(folder).save(checkpoint_state(), [(0.5, 0.0)]),
        lambda folder: checkpoint(folder).resume(checkpoint_state()),
    ),
    "feature cache": MutatedReader(write_cache, read_cache, (".safetensors",)),
    "index": MutatedReader(
        write_index, search_index, (".json", ".npy", ".parquet"), (".npy", ".parquet")
    ),
    "recognizer": MutatedReader(
        write_recognizer,
        read_recognizer,
        (".json", ".toml", ".txt", ".safetensors"),
        (".safetensors", ".txt"),
    ),
    "encoder manifest": MutatedReader(
        write_encoder, lambda folder: load_encoder(f"local-dir:{folder / 'encoder'}")
    ),
    "result cache": MutatedReader(write_result_cache, read_result_cache, (".json", ".npz")),
    "text lists": MutatedReader(write_names, read_lists),
    "ood detector": MutatedReader(
        write_ood_detector, lambda folder: load_ood_detector(folder / "ood.safetensors", "abc")
    ),
}


def check_message(error):
    if "\n" in str(error):
        raise AssertionError(f"the message has several lines: {str(error)[:200]!r}")


def replace_with_special_file(path, random):
    """Replace a file by a folder, a named pipe or a link to nothing."""
    path.unlink()
    random.choice([path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero")])()


def run_trial(reader, pristine, work, seed, expected):
    """Mutate one file of a copy of ``pristine`` and read it.

    Returns:
        The outcome, ``refused`` or ``read``.
    """
    generator = random.Random(seed)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(pristine, work)
    files = [file for file in sorted(work.rglob("*")) if file.is_file()]
    files = [file for file in files if not reader.suffixes or file.suffix in reader.suffixes]
    path = generator.choice(files)
    before = path.read_bytes()
    if generator.random() < 0.03:
        replace_with_special_file(path, generator)
    else:
        mutate_file(path, generator)
    is_changed = not path.is_file() or path.is_char_device() or path.read_bytes() != before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = reader.read(work)
        except SurelabelError as error:
            check_message(error)
            return "refused"
    is_wrong = is_changed and path.suffix in reader.checksummed and result != expected
    if is_wrong:
        raise AssertionError(f"{path.name} was changed and read: {result!r:.200}")
    return "read"


def prepare_trials(name, folder):
    """Write the unchanged files of a reader to ``folder / "pristine"``; return what is read."""
    (folder / "pristine").mkdir(parents=True)
    READERS[name].write(folder / "pristine")
    shutil.copytree(folder / "pristine", folder / "work")
    return READERS[name].read(folder / "work")


def run_trials(name, seeds, folder, expected, report):
    """Run trials of a reader, and call ``report(seed, outcome, traceback)`` before and after."""
    for seed in seeds:
        report(seed, "started", "")
        try:
            trial = run_trial(READERS[name], folder / "pristine", folder / "work", seed, expected)
            outcome, text = trial, ""
        except BaseException as error:  # every other exception is an error of the reader
            outcome = f"FAILED {type(error).__name__}: {str(error)[:300]}"
            text = traceback.format_exc()
        report(seed, outcome, text)


def run_limited_child(name, seeds, folder, expected, connection):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    run_trials(name, seeds, folder, expected, lambda *outcome: connection.send(outcome))


def run_trials_in_children(name, n_trials):
    """Run trials in child processes; a crash or a trial that hangs is a failed trial."""
    outcomes, next_seed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        expected = prepare_trials(name, Path(folder))
        while next_seed < n_trials:
            receiver, sender = multiprocessing.Pipe(duplex=False)
            child = multiprocessing.get_context("fork").Process(
                target=run_limited_child,
                args=(name, range(next_seed, n_trials), Path(folder), expected, sender),
            )
            child.start()
            sender.close()
            state = ""
            try:
                while receiver.poll(SECONDS):
                    seed, state, text = receiver.recv()
                    if state != "started":
                        outcomes.append((seed, state, text))
                        next_seed = seed + 1
            except EOFError:
                pass
            if next_seed < n_trials:
                is_alive = child.is_alive()
                child.kill()
                child.join()
                problem = "hangs" if is_alive else f"crashed ({child.exitcode})"
                outcomes.append((next_seed, f"FAILED {problem}", state))
                next_seed += 1
            child.join()
    return outcomes


def share_embedded_encoders():
    """Read the weights of each embedded encoder once, because reading takes most of the time."""
    read, encoders = embedded_weights.encoder_from_embedded_weights_folder, {}

    def read_once(folder, name, *, device="cpu"):
        if name not in encoders:
            encoders[name] = read(folder, name, device=device)
        return encoders[name]

    embedded_weights.encoder_from_embedded_weights_folder = read_once


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", help="Names of readers. [all]")
    parser.add_argument("--trials", type=int, default=50, help="Number of files per reader. [50]")
    parser.add_argument("--long", action="store_true", help="1,000 files per reader.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    share_embedded_encoders()
    os.environ["SURELABEL_CACHE"] = tempfile.mkdtemp()
    n_failed = 0
    for name in options.readers or READERS:
        start = time.perf_counter()
        outcomes = run_trials_in_children(name, 1000 if options.long else options.trials)
        counts = Counter(outcome.partition(":")[0] for _, outcome, _ in outcomes)
        failed = [outcome for outcome in outcomes if outcome[1].startswith("FAILED")]
        n_failed += len(failed)
        print(f"{name}: {dict(counts)} in {time.perf_counter() - start:.0f} s", flush=True)
        shown = {outcome: (seed, text) for seed, outcome, text in reversed(failed)}
        for outcome, (seed, text) in list(shown.items())[-8:]:
            print(f"  seed {seed}: {outcome}", *text.splitlines()[-14:], sep="\n    ", flush=True)
    shutil.rmtree(os.environ["SURELABEL_CACHE"], ignore_errors=True)
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
