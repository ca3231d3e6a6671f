import json
import os
import re
import signal

import numpy as np
import pytest
from safetensors import SafetensorError

from surelabel.data import collection
from surelabel.recognizer import Recognizer

LINEAR = ["--set", "method.name=linear", "--set", "epochs=3"]


def test_a_fitted_recognizer_is_saved_and_the_next_command_named(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", *LINEAR)
    assert done.code == 0
    assert done.out.startswith("Fitted linear on 24 images for 4 labels. Saved in fitted.")
    assert Recognizer.load("fitted").names == ["lion", "coffee", "guitar", "rocket"]


def test_options_and_the_run_file_are_what_is_saved(home, run):
    (home / "run.toml").write_text('seed = 3\nepochs = 2\n[method]\nname = "linear"\n')
    run("fit", "labels.csv", "--out", "first", "--run", "run.toml")
    run("fit", "labels.csv", "--out", "second", "--run", "run.toml", "--seed", "4")
    first, second = Recognizer.load("first").run, Recognizer.load("second").run
    assert (first.seed, first.epochs, first.method.name) == (3, 2, "linear")
    assert second.seed == 4


def test_the_same_seed_gives_the_same_recognizer_and_another_one_another(home, run):
    for out, seed in (("first", 1), ("second", 1), ("third", 2)):
        run("fit", "labels.csv", "--out", out, "--seed", seed, *LINEAR, "--set", "batch_size=4")
    first, second, third = (Recognizer.load(n).fingerprint for n in ("first", "second", "third"))
    assert first == second
    assert first != third


def test_only_the_names_asked_for_are_learnt(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--labels", "rocket", "--json", *LINEAR)
    assert json.loads(done.out) == {"recognizer": "fitted", "names": ["rocket"], "images": 24}


def test_images_lie_under_the_root_that_is_given(home, run):
    (home / "elsewhere").mkdir()
    (home / "labels.csv").rename(home / "elsewhere" / "labels.csv")
    line = ["fit", "elsewhere/labels.csv", "--out", "fitted", *LINEAR]
    assert run(*line).code == 1
    assert run(*line, "--images-root", ".").code == 0


def test_all_images_that_cannot_be_read_are_named_at_the_end(home, run):
    broken = sorted((home / "images").iterdir())[:5]
    for image in broken:
        image.write_bytes(b"")
    done = run("fit", "labels.csv", "--out", "fitted", *LINEAR)
    assert done.code == 0
    assert re.search(f"Note: 5 of 24 labelled images.*{broken[0].name}: empty file", done.err)
    *_, title, one, two, three, four, five = done.err.splitlines()
    assert title == "Skipped 5 images that cannot be read:"
    assert sorted([one, two, three, four, five]) == [
        f"  ./images/{image.name}: empty file" for image in broken
    ]
    assert done.out.startswith("Fitted linear on 19 images")


def test_a_fit_whose_result_cannot_be_saved_is_stored_and_resumes(home, run):
    line = ["fit", "labels.csv", "--out", "fitted/", "--folds", "2", *LINEAR]
    out = home / "fitted"
    (home / ".fitted.lock").touch()  # of a killed process
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surelabel.recognizer.saving.save_file", run_out_of_space)
        done = run(*line)
    assert done.code == 1
    assert re.fullmatch(
        r"Error: fitted/ cannot be written: No space left on device\. .*"
        r"The fit is stored in the checkpoint .*fitted\.unfinished\. To resume .*again\.\n",
        done.err.splitlines(keepends=True)[-1],
    )
    files = ["fitted.unfinished", "fitted.unfinished.fold-1-of-2", "fitted.unfinished.fold-2-of-2"]
    assert sorted(file.name for file in home.glob("*fitted*")) == files
    assert run(*line).code == 0
    assert [file.name for file in home.glob("*fitted*")] == ["fitted"]
    assert Recognizer.load(out).calibrated_on.endswith("(2-fold cross-validation)")


def run_out_of_space(_, path):
    path.write_text("half")
    raise SafetensorError("I/O error: No space left on device (os error 28)")


def test_a_method_that_learns_nothing_is_refused(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--set", "method.name=zero_shot")
    assert done.code == 1
    assert "zero_shot has no parameters to fit" in done.err


def test_folds_calibrate_without_other_labels(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--loss", "spa", "--folds", "3", *LINEAR)
    assert "for 4 labels, calibrated with 3 folds. Saved in fitted." in done.out
    assert "Next: surelabel evaluate fitted OTHER_DATASET" in done.out
    made = Recognizer.load("fitted")
    about = "beta (selected by log loss) on 24 labelled images (3-fold cross-validation)"
    assert made.calibrated_on == about
    assert f"Calibration: {about}.\nCross-validated log loss of the calibrators: beta " in done.out
    assert made.run.loss.name == "spa"


def test_ready_made_vectors_are_fitted_calibrated_and_measured(home, run):
    random = np.random.default_rng(0)
    features = random.normal(size=(90, 4))
    part = np.repeat(["train", "validation", "test"], 30)
    targets, names = features[:, :2] > 0, ["lion", "bear"]
    np.savez("vectors.npz", features=features, targets=targets, names=names, part=part)
    line = ["fit", "vectors.npz:train", "--method", "linear", "--out", "fitted"]
    done = run(*line, "--set", "learning_rate=0.3")
    assert "Fitted linear on 30 rows for 2 labels" in done.out
    assert "\nVectors: standardized by the statistics of 30 training vectors.\n" in done.out
    done = run(*line, "--set", "encoder.normalize=unit", "--json")
    assert json.loads(done.out)["vectors"] == "scaled to unit length"
    done = run(*line, "--set", "encoder.normalize=l2")
    assert "encoder.normalize must be one of auto, standardize, unit, none; got 'l2'" in done.err
    line = ["calibrate", "fitted", "vectors.npz:validation", "--out", "fitted"]
    assert run(*line, "--test", "vectors.npz:test").code == 0
    found = json.loads(run("evaluate", "fitted", "vectors.npz:test", "--json").out)
    assert found["images"] == 30
    assert " (selected by log loss" in found["calibration"]
    assert found["calibration"].endswith(" on 30 labelled rows")
    assert found["summary"]["mean_average_precision"] > 0.9


def test_a_search_of_scores_asks_for_calibration_first(home, run):
    run("fit", "labels.csv", "--out", "fitted", "--loss", "two_way", *LINEAR)
    done = run("evaluate", "fitted", "labels.csv", "--search", "lion", "--report", "report")
    assert (done.code, done.out) == (1, "")
    assert "require probabilities; got scores that are not calibrated" in done.err
    assert not (home / "report").exists()


SMALL = ["method.image_size=60", "method.width=32", "method.layers=1", "teacher.name=zero_shot"]
SMALL += ["epochs=1"]
TAILOR = ["--method", "tailor", *(word for setting in SMALL for word in ("--set", setting))]


def test_images_without_labels_teach_a_recognizer_that_tags(home, run):
    done = run("fit", "images", "--labels", "names.txt", "--out", "taught", *TAILOR)
    assert done.code == 0
    assert done.out.startswith("Fitted tailor on 24 images for 4 labels. Saved in taught.")
    assert "pseudo-labels of 24 images without labels.\nNot verified: no labels were" in done.out
    again = run("tag", "images", "--model", "taught", "--json", "--top-k", "4")
    assert again.code == 0
    tags = json.loads(again.out)[0]["tags"]
    assert len(tags) == 4
    assert all(0 < tag["probability"] < 1 for tag in tags)


def test_one_image_over_and_over_teaches_scores_and_no_probabilities_are_made_up(home, run):
    first, *others = sorted((home / "images").iterdir())
    for image in others:
        image.write_bytes(first.read_bytes())
    done = run("fit", "images", "--labels", "names.txt", "--out", "taught", *TAILOR)
    assert done.code == 0
    assert done.out.startswith("Fitted tailor on 24 images")


def test_a_folder_a_list_and_labelled_images_teach_the_same_without_labels(home, run):
    paths = sorted(str(p) for p in (home / "images").iterdir())
    (home / "list.txt").write_text("\n".join(paths))
    ways = {
        "folder": ["images", "--labels", "names.txt"],
        "list": ["list.txt", "--labels", "names.txt"],
        "files": [*paths, "--labels", "names.txt"],
        "labelled": ["labels.csv"],
    }
    for out, sources in ways.items():
        done = run("fit", *sources, "--out", out, *TAILOR)
        assert done.code == 0, done.err
        said = re.findall("Note: tailor is fitted without labels, so the labels of", done.err)
        assert len(said) == (out == "labelled")
    marks = {Recognizer.load(out).fingerprint for out in ("folder", "list", "files")}
    assert len(marks) == 1
    assert Recognizer.load("labelled").names == ["lion", "coffee", "guitar", "rocket"]


def test_a_fit_that_ctrl_c_ended_is_done_again_by_the_same_command(
    tmp_path, run, start, monkeypatch
):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    images = tmp_path / "list.txt"
    images.write_text("\n".join(collection("scenes-80", split="train").paths[:32]))
    out = tmp_path / "taught"
    names = ["--labels", "lion, car, guitar"]
    line = ["fit", images, *names, "--out", out, *TAILOR, "--set", "epochs=2"]
    process, errors = start(*line)
    with errors:
        assert errors.readline().startswith("Note: tailor makes only 4 optimizer steps")
        assert any(line.startswith("Fitting: 16 of ") for line in errors)
        os.killpg(process.pid, signal.SIGINT)
        said = errors.read().splitlines()
    process.join()
    assert process.exitcode == 130
    assert [text[:12] for text in said] == ["Interrupted."]
    assert not out.exists()
    assert run(*line).code == 0
    assert Recognizer.load(out).names == ["lion", "car", "guitar"]
    assert not out.with_name("taught.unfinished").exists()


def test_shots_sample_the_images_of_the_fit_and_print_the_counts(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--shots", "2", *LINEAR)
    assert done.code == 0, done.err
    sampled = re.search(
        r"Sampled (\d+) of 24 images; each label has 2 to \d+ positive images", done.err
    )
    assert 2 <= int(sampled[1]) <= 8
    assert f"Fitted linear on {sampled[1]} images for 4 labels." in done.out
    assert re.search(r"Positive images per label: lion \d+, coffee \d+, guitar", done.err)


def test_more_shots_than_images_take_all_positive_images(home, run):
    done = run("fit", "labels.csv", "--out", "all", "--shots", "99", "--json", *LINEAR)
    assert json.loads(done.out)["images"] == 24
    assert "Labels with fewer than 99 positive images, all of which are used: lion " in done.err


def test_shots_of_images_without_labels_are_refused(home, run):
    done = run(
        *("fit", "images", "--out", "no", "--shots", "1"),
        *("--method", "tailor", "--labels", "lion"),
    )
    assert done.code == 1
    assert done.err.startswith("Error: --shots requires an annotated DATASET")
    assert not os.path.exists("no")


CAPTIONS = "Two lions beside a guitar.\na cup of coffee\nthe blue sky\nA rocket, and a lion.\n"
TAI = ["--method", "tai", "--set", "epochs=1"]


def test_a_method_of_texts_is_fitted_on_captions_without_an_image(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captions.txt").write_text(CAPTIONS)
    labels = ["--labels", "lion, guitar, zebra"]
    done = run("fit", "captions.txt", *labels, "--out", "fitted", *TAI)
    assert done.code == 0, done.err
    assert "Note: 1 of 3 labels (zebra) is not mentioned in any text and is learned" in done.err
    assert "2 of 4 captions mention no label and are not used." in done.err
    assert done.out.startswith("Fitted tai on 2 captions for 3 labels. Saved in fitted.")
    assert "Next: surelabel calibrate fitted OTHER_DATASET --out fitted-calibrated" in done.out
    assert Recognizer.load("fitted").names == ["lion", "guitar", "zebra"]


def test_what_was_fitted_on_captions_is_calibrated_and_tags_images(home, run):
    (home / "captions.txt").write_text(CAPTIONS)
    fit = ["fit", "captions.txt", "--labels", "names.txt", "--out", "fitted", *TAI]
    assert run(*fit).code == 0
    assert run("calibrate", "fitted", "labels.csv", "--out", "fitted").code == 0
    done = run("tag", "images", "--model", "fitted", "--json")
    assert len(json.loads(done.out)) == 24


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["captions.txt"], "tai requires one caption file and labels; got no labels"),
        (["captions.txt", "captions.txt", "--labels", "lion"], "and labels; got 2 files"),
        (["captions.txt", "--labels", "cow"], "At least one caption must mention a label"),
        (["no.txt", "--labels", "lion"], "no.txt does not exist"),
        (
            ["captions.txt", "--labels", "lion, cow", "--folds", "2"],
            "folds requires annotated images",
        ),
        (["captions.txt", "--labels", "lion", "--shots", "2"], "--shots requires an annotated"),
        (["captions.txt", "--labels", "lion"], "tai requires at least 2 labels"),
        (["captions.txt", "--labels", "long.txt"], "at most 32 tokens together; got"),
    ],
)
def test_captions_that_cannot_be_fitted_are_refused_on_one_line(
    arguments, message, tmp_path, run, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captions.txt").write_text(CAPTIONS)
    (tmp_path / "long.txt").write_text("lion|" + "lion " * 30)
    done = run("fit", *arguments, "--out", "fitted", *TAI)
    assert done.code == 1
    assert message in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("Error: ")
    assert not (tmp_path / "fitted").exists()


@pytest.mark.parametrize("method", ["t2i_pal", "linear"])
@pytest.mark.parametrize("name", ["captions.csv", "captions.json"])
def test_captions_of_images_are_labels_for_methods_that_learn_from_labels(name, method, home, run):
    files = sorted(os.listdir("images"))[:6]
    texts = ["Two lions", "a guitar", "the blue sky", "a lion, a guitar", "a lion", "a cup"]
    lines = [f'images/{file},"{text}"' for file, text in zip(files, texts, strict=True)]
    (home / "captions.csv").write_text("\n".join(["image,caption", *lines]))
    images = [{"id": i, "file_name": f"images/{file}"} for i, file in enumerate(files)]
    captions = [{"image_id": i, "caption": text} for i, text in enumerate(texts)]
    (home / "captions.json").write_text(json.dumps({"images": images, "annotations": captions}))
    labels = ["--labels", "lion, guitar", "--method", method, "--set", "epochs=1"]
    done = run("fit", name, *labels, "--out", "fitted")
    assert done.code == 0, done.err
    assert done.out.startswith(f"Fitted {method} on 6 images for 2 labels.")
    assert "Note: A label that no caption of an image mentions is used as a negative" in done.err
    assert Recognizer.load("fitted").names == ["lion", "guitar"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["captions.csv"], "Captions need --labels, which are searched in the captions"),
        (
            ["captions.csv", "--labels", "lion"],
            "1 of 1 files are missing, such as './lost.jpg'. Correct the paths",
        ),
        (["captions.csv", "--labels", "cow"], "At least one caption must mention a label"),
        (["captions.txt", "--labels", "lion"], "got the text file captions.txt. Give a CSV file"),
        (["damaged.json", "--labels", "lion"], "damaged.json"),
    ],
)
def test_captions_without_images_are_refused_on_one_line(
    arguments, message, tmp_path, run, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captions.txt").write_text(CAPTIONS)
    (tmp_path / "captions.csv").write_text("image,caption\nlost.jpg,a lion\n")
    (tmp_path / "damaged.json").write_text('{"images": [')
    done = run("fit", *arguments, "--out", "fitted", "--method", "t2i_pal")
    assert done.code == 1
    assert message in done.err
    assert [line for line in done.err.splitlines() if line.startswith("Error: ")] == [
        done.err.splitlines()[-1]
    ]
    assert not (tmp_path / "fitted").exists()


def test_the_captions_of_a_collection_are_a_source(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = ["fit", "scenes-80:validation", "--labels", "lion, car", "--out", "fitted", *TAI]
    found = json.loads(run(*line, "--json").out)
    assert found["names"] == ["lion", "car"]
    assert found["captions"] > 50


def test_keywords_in_sidecars_are_labels_and_what_was_read_is_printed(home, run):
    images = sorted((home / "images").iterdir())
    for number, image in enumerate(images[:20]):
        keyword = ("lion", "rocket")[number % 2]
        image.with_suffix(".xmp").write_text(
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Description rdf:about="">'
            f"<dc:subject><rdf:Bag><rdf:li>{keyword}</rdf:li></rdf:Bag></dc:subject>"
            "</rdf:Description></rdf:RDF>"
        )
    for option, counts in (
        ([], "20 positive, 20 negative, 8 unknown"),
        (["--missing", "unknown"], "20 positive, 0 negative, 28 unknown"),
    ):
        done = run("fit", "xmp:images", "--out", "fitted", *LINEAR, *option)
        assert done.code == 0, done.err
        assert (
            "xmp:images: keywords in XMP sidecars of 20 of 24 images; 2 labels: lion, rocket."
            in (done.err)
        )
        assert f"24 images; targets: {counts}." in done.err
        note = "Note: All known targets of 20 training images are positive"
        assert (note in done.err) is bool(option)
    assert Recognizer.load("fitted").names == ["lion", "rocket"]
    refused = run("fit", "labels.csv", "--missing", "unknown", "--out", "other", *LINEAR)
    assert refused.code == 1
    assert "missing can be given only for" in refused.err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "--devices requires --method"),
        (("--method", "linear"), "linear is fitted on one device. Remove devices, or set"),
        (("--method", "extra_trees"), "extra_trees is fitted on one device. Remove devices."),
        (("--method", "tailor"), "tailor is fitted on one device. Remove devices."),
        (
            ("--method", "recover_match"),
            "RecoverMatch must be trained on one device, because the method has batch norm",
        ),
        (("--method", "variational_tagger"), "has loss terms that depend on all images"),
    ],
)
def test_methods_that_need_one_device_refuse_devices(home, run, options, text):
    refused = run("fit", "labels.csv", "--out", "fitted", "--devices", "2", *options)
    assert refused.code
    assert text in " ".join(refused.err.split())
    assert not os.path.exists("fitted")


def test_one_device_without_a_gpu_trains_in_this_process(home, run):
    options = ("labels.csv", "--method", "clip_adapter", "--set", "epochs=1")
    assert run("fit", *options, "--out", "one", "--devices", "1").code == 0
    assert run("fit", *options, "--out", "none").code == 0
    assert Recognizer.load("one").fingerprint == Recognizer.load("none").fingerprint
