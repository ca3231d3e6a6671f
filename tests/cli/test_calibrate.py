import json

import pytest

from surelabel.data import collection
from surelabel.recognizer import Recognizer

LINEAR = ["--set", "method.name=linear", "--set", "epochs=3"]


def test_calibration_counts_positives_and_says_what_to_label_next(home, run):
    done = run("calibrate", "recognizer", "labels.csv", "--json")
    found = json.loads(done.out)
    names = ["lion", "coffee", "guitar", "rocket"]
    test = collection("scenes-80", split="test")
    columns = [list(test.names).index(name) for name in names]
    rows = test.targets[:, columns].any(axis=1).nonzero()[0][:24]
    counts = test.targets[rows][:, columns].sum(axis=0).astype(int).tolist()
    assert found["positives"] == dict(zip(names, counts, strict=True))
    assert found["label_next"] == sorted(names, key=lambda n: found["positives"][n])
    assert found["recognizer"] is None


def test_calibration_says_on_what_it_was_measured(home, run):
    done = run("calibrate", "recognizer", "labels.csv")
    assert "Measured on the same pictures, which flatters it" in done.out
    assert "Nothing was saved; --out FOLDER saves it." in done.out
    done = run("calibrate", "recognizer", "labels.csv", "--test", "labels.csv", "--out", "again")
    assert "Measured on labels.csv." in done.out
    assert "Saved in again." in done.out
    assert Recognizer.load("again").calibrated_on == "beta on 24 labelled pictures"


def test_calibration_makes_fitted_pictures_no_less_likely(home, run):
    run("fit", "labels.csv", "--out", "fitted", *LINEAR)
    found = json.loads(run("calibrate", "fitted", "labels.csv", "--json").out)
    before, after = found["before"]["summary"], found["after"]["summary"]
    assert after["log_loss"] <= before["log_loss"] + 0.05
    assert after["mean_average_precision"] == pytest.approx(before["mean_average_precision"])


def test_all_pictures_that_cannot_be_read_are_named_once_at_the_end(home, run):
    pictures = sorted((home / "pictures").iterdir())
    for picture in pictures[:5]:
        picture.write_bytes(b"")
    header, *rows = (home / "labels.csv").read_text().splitlines()
    for name, part in (("held-out.csv", rows[:10]), ("test.csv", rows[4:])):
        (home / name).write_text("\n".join([header, *sorted(part)]) + "\n")
    for line in (["labels.csv"], ["held-out.csv", "--test", "test.csv"]):
        done = run("calibrate", "recognizer", *line)
        assert done.code == 0
        *_, named = done.err.partition("Skipped 5 that cannot be read:\n")
        assert sorted(named.splitlines()) == [
            f"  ./pictures/{picture.name}: empty file" for picture in pictures[:5]
        ]


def test_calibration_moves_to_an_archive_without_labels(home, run):
    done = run("calibrate", "recognizer", "pictures", "--unlabelled", "--out", "moved")
    assert done.out.startswith("Moved to 24 pictures.")
    assert (
        Recognizer.load("moved").calibrated_on == "beta on 24 labelled pictures, moved to 24 others"
    )
    found = json.loads(run("calibrate", "recognizer", "pictures", "--unlabelled", "--json").out)
    assert list(found["shift"]) == ["lion", "coffee", "guitar", "rocket"]


def test_an_archive_without_labels_has_no_others_to_measure_on(home, run):
    line = ["calibrate", "recognizer", "pictures", "--unlabelled"]
    for more in (["--test", "labels.csv"], ["--pictures", "."]):
        done = run(*line, *more)
        assert (done.code, done.out) == (2, "")
        assert "--unlabelled goes with neither --test nor --pictures." in done.err


def test_scores_of_a_method_without_labels_become_probabilities(home, run):
    line = ["calibrate", "tiny-vit", "labels.csv", "--out", "tiled", "--method", "tiles"]
    assert run(*line, "--set", "method.down=2", "--set", "method.across=2").code == 0
    made = Recognizer.load("tiled")
    assert (made.run.method.name, made.run.method.settings) == ("tiles", {"down": 2, "across": 2})
    assert made.calibrated_on == "beta on 24 labelled pictures"
    assert run("index", "tiled-index", "pictures", "--model", "tiled").code == 0


def test_pictures_without_labels_calibrate_what_nothing_has_calibrated(home, run):
    line = ["calibrate", "tiny-vit", "pictures", "--unlabelled", "--labels", "names.txt"]
    line += ["--method", "standardised"]
    done = run(*line, "--out", "alone")
    assert done.code == 0
    about = "beta without labels: from what parts of 24 pictures show"
    assert done.out.startswith(f"Calibrated: {about}.\nNo label was there to check")
    assert Recognizer.load("alone").calibrated_on == about
    assert json.loads(run(*line, "--json").out)["calibration"] == about
    tagged = run("tag", "pictures", "--model", "alone", "--json", "--top-k", "1")
    assert all(p["tags"][0]["probability"] is not None for p in json.loads(tagged.out))
