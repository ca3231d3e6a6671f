"""What a user can get wrong gets one line, exit code 1, and changes nothing on disk."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from surelabel.data import collection


def contents(folder):
    """Every file below a folder and its bytes."""
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def empty_folder(home):
    (home / "empty").mkdir()
    return ["tag", "empty", "--labels", "lion"]


def only_broken_images(home):
    (home / "broken").mkdir()
    (home / "broken" / "one.jpg").write_bytes(b"no image")
    return ["tag", "broken", "--labels", "lion"]


def one_broken_image_when_strict(home):
    (home / "images" / "broken.jpg").write_bytes(b"no image")
    return ["tag", "images", "--labels", "lion", "--strict"]


def empty_names_file(home):
    (home / "nothing.txt").write_text("\n\n")
    return ["tag", "images", "--labels", "nothing.txt"]


def twice_in_a_file(home):
    (home / "twice.txt").write_text("lion\nbear\nlion\n")
    return ["tag", "images", "--labels", "twice.txt"]


def label_file(text):
    def made(home):
        (home / "bad.csv").write_text(text)
        return ["fit", "bad.csv", "--out", "recognizer"]

    return made


def newer_recognizer(home):
    about = home / "recognizer" / "about.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"format": 99}))
    return ["tag", "images", "--model", "recognizer"]


def without(name):
    def made(home):
        (home / "recognizer" / name).unlink()
        return ["tag", "images", "--model", "recognizer"]

    return made


def truncated(name):
    def made(home):
        file = home / "recognizer" / name
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        return ["tag", "images", "--model", "recognizer"]

    return made


def newer_index(home):
    index = home / "index" / "index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"version": 99}))
    return ["search", "index", "lion"]


def truncated_index(home):
    file = next((home / "index").glob("high-*.npy"))
    file.write_bytes(file.read_bytes()[:-8])
    return ["search", "index", "lion"]


def demo_over_something_else(home):
    (home / "shown" / "recognizer").mkdir(parents=True)
    (home / "shown" / "recognizer" / "mine").write_text("precious")
    return ["demo", "--out", "shown"]


def search(query, *more):
    return ["search", "index", query, *more]


def archive(asked="", **arrays):
    """A command that fits vectors of these arrays."""

    def made(home):
        whole = {
            "features": np.eye(6),
            "targets": np.eye(6, 2),
            "names": np.array(["lion", "bear"]),
            **arrays,
        }
        np.savez("bad.npz", **{k: v for k, v in whole.items() if v is not None})
        return ["fit", f"bad.npz{asked}", "--method", "linear", "--out", "vectors"]

    return made


def archive_of_tokens(home):
    return [*archive()(home)[:2], *TAILOR]


def no_archive(home):
    (home / "bad.npz").write_text("no archive")
    return ["fit", "bad.npz", "--method", "linear", "--out", "vectors"]


def folder_of_a_broken_image(home):
    (home / "broken").mkdir()
    (home / "broken" / "one.jpg").write_bytes(b"no image")
    return ["fit", "broken", *TAILOR, "--labels", "names.txt"]


def folder_without_images(home):
    (home / "empty").mkdir()
    (home / "empty" / "notes.doc").write_text("no image")
    return ["fit", "empty", *TAILOR, "--labels", "names.txt"]


TAILOR = ["--method", "tailor", "--out", "new"]


def one_labelled_image(home):
    lines = (home / "labels.csv").read_text().splitlines()
    return [*label_file("\n".join(lines[:2]))(home), *COOP, "--regularizer", "class_covariance"]


def label_longer_than_the_context(home):
    (home / "long.txt").write_text(f"lion\n{'word ' * 31}\n")
    return ["fit", "labels.csv", *COOP, "--labels", "long.txt", "--out", "new"]


def captions_in_latin_1(home):
    (home / "captions.txt").write_bytes("a lion in a café".encode("latin-1"))
    return ["fit", "captions.txt", "--method", "tai", "--labels", "names.txt", "--out", "new"]


def only_unknown_targets(home):
    header, first, *_ = (home / "labels.csv").read_text().splitlines()
    return [*label_file(f"{header}\n{first.split(',')[0]},,,,\n")(home), *COOP]


COOP = ["--method", "coop", "--set", "epochs=1"]
RANDOM_WEIGHTS = ["--set", "encoder.pretrained=false"]
GOAL = ["tag", "images", "--labels", "lion"]
FIT = ["fit", "labels.csv", "--set", "method.name=linear", "--set", "epochs=1"]
BELOW_A_FILE = "names.txt/below"
CASES = {
    "an empty folder": (empty_folder, "Expected images .* got 0 images among 0 files in empty"),
    "a folder that is not there": (
        ["tag", "nowhere", "--labels", "lion"],
        "nowhere does not exist",
    ),
    "only broken images": (
        only_broken_images,
        "got 1 unreadable image. The first error: .*one.jpg",
    ),
    "a broken image when strict": (one_broken_image_when_strict, "broken.jpg: not an image"),
    "no label names": (["tag", "images"], "tiny-vit requires labels; got none"),
    "an empty label name": (
        ["tag", "images", "--labels", ""],
        "Expected at least one label; got none",
    ),
    "an empty file of names": (empty_names_file, "Expected at least one label; got none"),
    "duplicate names": (
        ["tag", "images", "--labels", "lion, bear, lion"],
        "must be unique.*'lion'",
    ),
    "duplicate names in a file": (twice_in_a_file, "'lion' on line 1 and again on line 3"),
    "a name of 300 characters": (
        ["tag", "images", "--labels", "a" * 300],
        "has 300 characters, but must have at most 200",
    ),
    "a file of names that is not there": (
        ["tag", "images", "--labels", "gone.txt"],
        "gone.txt cannot be read: No such file",
    ),
    "labels for images that do not exist": (
        label_file("path,lion\nimages/gone.jpg,1\n"),
        "All images of .* must exist; 1 of 1 missing: .*gone.jpg",
    ),
    "a wrong column count": (
        label_file("path,lion\nimages/00000.jpg,1\nimages/00001.jpg,1,0\n"),
        "bad.csv, line 3: expected 2 columns as in the header; got 3",
    ),
    "infinity in a label": (
        label_file("path,lion\nimages/00000.jpg,1\nimages/00001.jpg,inf\n"),
        "bad.csv, line 3: the target of 'lion' must be in .* got 'inf'",
    ),
    "a label called path": (
        label_file("path,path\nimages/00000.jpg,1\n"),
        "'path' must not be a label",
    ),
    "an annotation file that is not there": (
        ["evaluate", "tiny-vit", "gone.csv"],
        "gone.csv does not exist",
    ),
    "a split that is not there": (
        ["evaluate", "tiny-vit", "scenes-80:tests"],
        "The split of scenes-80 must be one of train.*; got 'tests'",
    ),
    "an unknown name in a query": (search("lion & guitr"), "'guitr'.* Did you mean 'guitar'"),
    "an empty query": (search(" "), "A query must contain at least one term"),
    "unbalanced quotes": (search('"lion'), "This quote has no closing quote"),
    "a parenthesis that is not closed": (search("(lion | guitar"), r"This \( has no matching \)"),
    "a date that does not exist": (search("date>=2024-13"), "date must exist"),
    "a label with a colon": (search("lion: male"), 'in quotes: "lion: male"'),
    "a threshold under !": (search("!lion>0.8"), "Write lion<0.8 without !"),
    "10,000 labels": (search("&".join(["lion"] * 10_000)), "at most 10,000 characters"),
    "no index": (["search", "images", "lion"], "images must be the folder of an index"),
    "an index from a newer version": (newer_index, "version 99.*Install a newer version"),
    "a truncated index": (truncated_index, "high-.*npy"),
    "an index of another recognizer": (
        ["index", "index", "images", "--model", "tiny-vit"],
        "contains predictions of .* 4 labels .*; got .*--model .*recognizer and the labels of",
    ),
    "an unknown model": (
        ["tag", "images", "--labels", "lion", "--model", "tiny-vitt"],
        "'tiny-vitt' is not the name of an encoder. Nearest: tiny-vit",
    ),
    "a mistyped folder of a recognizer": (
        ["evaluate", "recognizr", "labels.csv"],
        "There is no folder recognizr, and 'recognizr' is not the name of an encoder",
    ),
    "a mistyped path of a recognizer": (
        ["evaluate", "./recognizr", "labels.csv"],
        r"MODEL '\./recognizr': no such folder\. Check the path",
    ),
    "an encoder in two options": (
        ["tag", "images", "--labels", "lion", "--set", "encoder.name=tiny-rn"],
        "The encoder must be given only with --model; got --model tiny-vit and the setting",
    ),
    "a device without values": (
        ["tag", "images", "--labels", "lion", "--device", "meta"],
        "--device must be a device that torch can use.* got 'meta'",
    ),
    "a template without a place": (
        ["tag", "images", "--labels", "lion", "--template", "photo"],
        "--template must be the name of a set .one, ensemble., .*; got 'photo'",
    ),
    "a seed that is too large": (
        ["fit", "labels.csv", "--out", "new", "--seed", "9" * 20],
        "--seed must be an integer in",
    ),
    "several annotation files": (
        ["fit", "labels.csv", "labels.csv", "--out", "new"],
        "requires one annotated dataset; got 2 arguments: labels.csv labels.csv",
    ),
    "a file in place of the folder of the demo": (
        ["demo", "--out", "names.txt"],
        "--out requires a folder; got the file names.txt",
    ),
    "an unknown device": (
        ["tag", "images", "--labels", "lion", "--device", "gpu"],
        "device must be a device that torch can use.*'gpu'",
    ),
    "an unknown output format": (
        ["tag", "nowhere", "--labels", "lion", "--out", "tags.xlsx"],
        "must be one of .parquet, .csv, .jsonl; got 'tags.xlsx'",
    ),
    "an unknown setting": (["check", "--set", "loss.gama=1"], "binary has no setting gama"),
    "a recognizer from a newer version": (
        newer_recognizer,
        "recognizer has format 99 .* Upgrade surelabel",
    ),
    "a recognizer without its weights": (
        without("weights.safetensors"),
        "must be a complete saved recognizer; the folder does not contain weights.safetensors",
    ),
    "a recognizer without its names": (without("names.txt"), "does not contain names.txt"),
    "truncated weights": (truncated("weights.safetensors"), "weights.safetensors is damaged"),
    "a truncated calibration": (truncated("calibration.json"), "calibration.json is damaged"),
    "truncated names": (
        truncated("names.txt"),
        "must contain 3 labels, as in names.txt; got 4. Copy the complete folder",
    ),
    "tags that cannot be written": (
        ["tag", "images", "--labels", "lion", "--out", f"{BELOW_A_FILE}/tags.csv"],
        "below/tags.csv cannot be written: .*names.txt is a file",
    ),
    "a recognizer that cannot be written": ([*FIT, "--out", BELOW_A_FILE], "cannot be written"),
    "a recognizer over something else": (
        ["fit", "labels.csv", "--out", "images"],
        "must be new, empty or a saved recognizer; images contains other files",
    ),
    "a recognizer over the current folder": (
        ["fit", "gone.csv", "--out", "."],
        "must not contain the current folder",
    ),
    "a calibration over something else": (
        ["calibrate", "tiny-vit", "labels.csv", "--out", "images"],
        "must be new, empty or a saved recognizer; images contains other files",
    ),
    "a calibration that cannot be written": (
        ["calibrate", "tiny-vit", "labels.csv", "--out", BELOW_A_FILE],
        "cannot be written",
    ),
    "a report that cannot be written": (
        ["evaluate", "recognizer", "labels.csv", "--report", BELOW_A_FILE],
        "cannot be written",
    ),
    "a report over something else": (
        ["evaluate", "recognizer", "labels.csv", "--report", "images"],
        "new or empty, or contain an existing report; got images, which contains other files",
    ),
    "a report over the current folder": (
        ["evaluate", "recognizer", "gone.csv", "--report", "."],
        "must not contain the current folder",
    ),
    "a demo over something else": (
        demo_over_something_else,
        "a saved recognizer; shown/recognizer contains other files",
    ),
    "an index that cannot be written": (
        ["index", BELOW_A_FILE, "images", "--labels", "lion"],
        "cannot be written",
    ),
    "an index over something else": (
        ["index", "images", "images", "--labels", "lion"],
        "got images/",
    ),
    "scenes that cannot be written": (
        ["scenes", BELOW_A_FILE, "--count", "2"],
        "cannot be written",
    ),
    "vectors that need pickle": (
        archive(names=np.array(["lion", 3], dtype=object)),
        "bad.npz .*numpy.savez|bad.npz must be",
    ),
    "vectors without names": (archive(names=None), "bad.npz .*names"),
    "vectors that are no archive": (no_archive, "bad.npz .*npz|bad.npz is no"),
    "vectors that are not there": (["evaluate", "tiny-vit", "gone.npz"], "gone.npz"),
    "targets that do not fit the vectors": (
        archive(targets=np.eye(5, 2)),
        "got 6 rows of features and 5 rows of targets",
    ),
    "a part of vectors without parts": (
        archive(":test"),
        "contains no split 'test'. Give the file without a split",
    ),
    "an empty part of vectors": (archive(":"), "contains no split ''"),
    "an unknown part of vectors": (
        archive(":tests", part=np.array(["train"] * 3 + ["test"] * 3)),
        "contains no split 'tests'. Give one of its splits: train, test",
    ),
    "an unknown loss": ([*FIT, "--loss", "spaa", "--out", "new"], "'spaa'.* Did you mean 'spa'"),
    "an unknown method": (["fit", "labels.csv", "--method", "liner", "--out", "new"], "'linear'"),
    "an unknown regularizer": (
        [*FIT, "--regularizer", "label_pairs", "--out", "new"],
        "Did you mean 'label_pair'",
    ),
    "more folds than images": ([*FIT, "--folds", "25", "--out", "new"], "got 25 folds and 24"),
    "folds of a whole network": (
        ["fit", "labels.csv", "--method", "finetune", "--folds", "2", "--out", "new"],
        "folds must be 0 for finetune",
    ),
    "a goal without calibration on labels": (
        [*GOAL, "--precision", "0.9"],
        "with 20 or more annotated",
    ),
    "a guarantee without it": ([*GOAL, "--at-most-wrong", "0.1"], "with 20 or more annotated"),
    "a guarantee that few images cannot prove": (
        ["tag", "images", "--model", "recognizer", "--at-most-wrong", "0.001"],
        "It cannot be guaranteed .* labelled images in total are needed",
    ),
    "unlabelled images that have labels": (
        ["calibrate", "recognizer", "labels.csv", "--unlabelled"],
        "got labels.csv, which has labels. Remove --unlabelled",
    ),
    "a collection as unlabelled images": (
        ["calibrate", "recognizer", "scenes-80:test", "--unlabelled"],
        "got scenes-80:test, which has labels",
    ),
    "unlabelled images for an encoder without labels": (
        ["calibrate", "tiny-vit", "images", "--unlabelled"],
        "tiny-vit",
    ),
    "an unknown name in a search that is evaluated": (
        ["evaluate", "recognizer", "labels.csv", "--search", "guitr", "--report", "new"],
        "'guitr'.* Did you mean 'guitar'",
    ),
    "an empty search": (["evaluate", "recognizer", "labels.csv", "--search", ""], "at least one"),
    "images without labels for a method of labels": (
        ["fit", "images", "--out", "new"],
        "fit without --method requires an annotated dataset; .* --method tailor --labels",
    ),
    "an image for a method of labels": (
        ["fit", "images/00000.jpg", "--method", "linear", "--out", "new"],
        "linear requires an annotated dataset; got the unlabelled images images/00000.jpg",
    ),
    "images alone and no names": (
        ["fit", "images", *TAILOR],
        "tailor requires labels; got images without labels. Add --labels",
    ),
    "one label for a method that compares labels": (
        ["fit", "images", *TAILOR, "--labels", "lion"],
        "requires at least 3 labels; got 1",
    ),
    "folds without labels": (
        ["fit", "images", *TAILOR, "--labels", "names.txt", "--folds", "3"],
        "folds requires labels; tailor is fitted without labels",
    ),
    "a regularizer of labels without labels": (
        ["fit", "images", *TAILOR, "--labels", "names.txt", "--regularizer", "label_pair"],
        "regularizer.name=label_pair requires labels",
    ),
    "a loss that gives no log-odds, without labels": (
        ["fit", "images", *TAILOR, "--labels", "names.txt", "--loss", "two_way"],
        "a loss whose scores are log-odds; got loss.name=two_way. Use loss.name=binary",
    ),
    "a folder without images to learn from": (folder_without_images, "got 0 images among 1 file "),
    "only broken images to learn from": (folder_of_a_broken_image, "got 1 unreadable image"),
    "vectors for a method that requires images": (
        archive_of_tokens,
        "features:6 needs precomputed features",
    ),
    "tags of a method that must be fitted": (
        [*GOAL, "--method", "tailor"],
        "tailor requires training on images; .*`surelabel fit IMAGES --method tailor",
    ),
    "tags of a method of labels": (
        [*GOAL, "--method", "linear"],
        "linear requires training on labels; .*`surelabel fit DATASET --method linear",
    ),
    "an unknown method to tag with": ([*GOAL, "--method", "tile"], "'tile' is unknown"),
    "an unknown setting to tag with": (
        [*GOAL, "--set", "method.domian=centred"],
        "zero_shot has no setting domian",
    ),
    "a method for a saved recognizer": (
        ["tag", "images", "--model", "recognizer", "--method", "zero_shot"],
        "whose method cannot be changed. Remove --method and --set",
    ),
    "two names and a score within the list": (
        ["tag", "images", "--labels", "lion, bear", "--set", "method.domain=centred"],
        "needs 3 or more; got 2",
    ),
    "a demo that cannot be written": (["demo", "--out", BELOW_A_FILE], "cannot be written"),
    "learned prompts and an encoder without texts": (
        ["fit", "labels.csv", *COOP, "--model", "timm:test_vit", *RANDOM_WEIGHTS, "--out", "new"],
        "timm:test_vit has no text tower.*Use a method without texts, .* or an encoder with a text",
    ),
    "a label longer than the context": (
        label_longer_than_the_context,
        r"at most 32 tokens together; got 16 context vectors and 32 or more tokens of 'word "
        r".* a shorter label\.",
    ),
    "covariances in batches of one image": (
        [*FIT, "--regularizer", "class_covariance", "--set", "batch_size=1", "--out", "new"],
        "compares the images of a batch and needs 4 or more images per forward pass .* got "
        r"1\. Increase batch_size",
    ),
    "covariances of one image": (one_labelled_image, "needs 4 or more .* got 1 training images"),
    "only unknown targets": (
        only_unknown_targets,
        "needs at least one known target; all .* targets are unknown",
    ),
    "shots of unknown targets": (
        ["fit", "labels.csv", *COOP, "--labels", "zebra, cow", "--shots", "2", "--out", "new"],
        "--shots requires images with a positive label; got 24 images without positive labels",
    ),
    "captions in another encoding": (
        captions_in_latin_1,
        r"captions\.txt must be text in UTF-8; got.* at position 15, .* Save the file as UTF-8",
    ),
}


STATUS = re.compile(r"Note: |\S+: images in '|\d+ images?; targets: ")  # before a fit fails


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_one_line_and_exit_code_1_and_changes_nothing(case, home, run):
    prepared, complaint = CASES[case]
    arguments = prepared(home) if callable(prepared) else prepared
    before = contents(home)
    done = run(*arguments)
    errors = [line for line in done.err.splitlines() if not STATUS.match(line)]
    assert (done.code, done.out) == (1, "")
    message, *excerpt = errors
    assert message.startswith("Error: ")
    assert re.search(complaint, message)
    assert len(excerpt) in (0, 2)  # the query and a mark below a character
    assert all(line.startswith("  ") for line in excerpt)
    assert contents(home) == before


def test_ctrl_c_says_in_one_line_that_a_rerun_goes_on_and_it_does(tmp_path, run, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    images = tmp_path / "list.txt"
    images.write_text("\n".join(collection("scenes-80", split="test").paths[:512]))
    line = ["tag", str(images), "--labels", "lion", "--out", str(tmp_path / "tags.csv")]
    line += ["--max-passes", "1"]
    started = subprocess.Popen(
        [sys.executable, "-m", "surelabel", *line],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with started:
        assert started.stderr.readline() == "Importing torch and open_clip\n"
        assert any(line.startswith("Tagging: 64 of 512") for line in started.stderr)
        os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to the workers as well
        said = started.stderr.read().splitlines()
    assert started.returncode == 130
    assert [line for line in said if line.startswith("Interrupted. The features of encoded")]
    assert len(said) == 1
    assert not Path(tmp_path / "tags.csv").exists()
    done = run(*line)
    assert done.code == 0
    assert int(re.search(r"(\d+) cached", done.err)[1]) >= 64
