import json

import pytest

from surelabel.data import collection
from surelabel.recognizer import Recognizer

LINEAR = ["--set", "method.name=linear", "--set", "epochs=3"]


def test_calibration_counts_positives_and_lists_the_rarest_labels(home, run):
    done = run("calibrate", "recognizer", "labels.csv", "--json")
    found = json.loads(done.out)
    names = ["lion", "coffee", "guitar", "rocket"]
    test = collection("scenes-80", split="test")
    columns = [list(test.names).index(name) for name in names]
    rows = test.targets[:, columns].any(axis=1).nonzero()[0][:24]
    counts = test.targets[rows][:, columns].sum(axis=0).astype(int).tolist()
    assert found["positives"] == dict(zip(names, counts, strict=True))
    assert found["rarest_labels"] == sorted(names, key=lambda n: found["positives"][n])
    assert found["recognizer"] is None


def test_calibration_names_the_dataset_of_the_metrics(home, run):
    done = run("calibrate", "recognizer", "labels.csv")
    assert "computed on the calibration dataset, so the metrics are optimistic" in done.out
    assert "The recognizer was not saved. Add --out FOLDER to save the recognizer." in done.out
    done = run("calibrate", "recognizer", "labels.csv", "--test", "labels.csv", "--out", "again")
    assert "The metrics were computed on labels.csv." in done.out
    assert "Saved in again." in done.out
    assert "\nCross-validated log loss of the calibrators: beta 0." in done.out
    about = "beta (selected by log loss) on 24 labelled images"
    assert Recognizer.load("again").calibrated_on == about


def test_calibration_makes_fitted_images_no_less_likely(home, run):
    run("fit", "labels.csv", "--out", "fitted", *LINEAR)
    found = json.loads(run("calibrate", "fitted", "labels.csv", "--json").out)
    before, after = found["before"]["summary"], found["after"]["summary"]
    assert after["log_loss"] <= before["log_loss"] + 0.05
    assert after["mean_average_precision"] == pytest.approx(before["mean_average_precision"])


def test_all_images_that_cannot_be_read_are_named_once_at_the_end(home, run):
    images = sorted((home / "images").iterdir())
    for image in images[:5]:
        image.write_bytes(b"")
    header, *rows = (home / "labels.csv").read_text().splitlines()
    for name, part in (("held-out.csv", rows[:10]), ("test.csv", rows[4:])):
        (home / name).write_text("\n".join([header, *sorted(part)]) + "\n")
    for line in (["labels.csv"], ["held-out.csv", "--test", "test.csv"]):
        done = run("calibrate", "recognizer", *line)
        assert done.code == 0
        *_, named = done.err.partition("Skipped 5 images that cannot be read:\n")
        assert sorted(named.splitlines()) == [
            f"  ./images/{image.name}: empty file" for image in images[:5]
        ]


def test_calibration_adapts_to_unlabelled_images(home, run):
    done = run("calibrate", "recognizer", "images", "--unlabelled", "--out", "moved")
    assert done.out.startswith("The calibration was adapted to 24 images. The adaptation assumes")
    assert (
        Recognizer.load("moved").calibrated_on
        == "beta (selected by log loss) on 24 labelled images, adapted to 24 other images"
    )
    found = json.loads(run("calibrate", "recognizer", "images", "--unlabelled", "--json").out)
    assert list(found["shift"]) == ["lion", "coffee", "guitar", "rocket"]


def test_unlabelled_images_cannot_be_combined_with_a_test_dataset(home, run):
    line = ["calibrate", "recognizer", "images", "--unlabelled"]
    for more in (["--test", "labels.csv"], ["--images-root", "."]):
        done = run(*line, *more)
        assert (done.code, done.out) == (2, "")
        options = "--test, --images-root or --corrections"
        assert f"--unlabelled cannot be combined with {options}." in done.err


def test_scores_of_a_method_without_labels_become_probabilities(home, run):
    line = ["calibrate", "tiny-vit", "labels.csv", "--out", "tiled", "--method", "tiles"]
    assert run(*line, "--set", "method.rows=2", "--set", "method.columns=2").code == 0
    made = Recognizer.load("tiled")
    assert (made.run.method.name, made.run.method.settings) == ("tiles", {"rows": 2, "columns": 2})
    assert made.calibrated_on == "beta (selected by log loss) on 24 labelled images"
    assert run("index", "tiled-index", "images", "--model", "tiled").code == 0


def test_unlabelled_images_calibrate_an_uncalibrated_recognizer(home, run):
    line = ["calibrate", "tiny-vit", "images", "--unlabelled", "--labels", "names.txt"]
    line += ["--method", "standardized"]
    done = run(*line, "--out", "alone")
    assert done.code == 0
    about = "beta on pseudo-labels of 24 images without labels"
    assert done.out.startswith(f"Calibrated: {about}.\nNot verified: no labels were available.")
    assert Recognizer.load("alone").calibrated_on == about
    assert json.loads(run(*line, "--json").out)["calibration"] == about
    tagged = run("tag", "images", "--model", "alone", "--json", "--top-k", "1")
    assert all(p["tags"][0]["probability"] is not None for p in json.loads(tagged.out))
