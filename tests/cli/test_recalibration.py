import json

import pytest

from surelabel.recognizer import Recognizer


@pytest.fixture
def distorted(home):
    """Save a recognizer whose log-odds are tripled and increased by 2."""
    recognizer = Recognizer.load("recognizer")
    calibration = recognizer.calibration
    recognizer.calibration = calibration.recalibrated(3.0, 2.0, calibration.record)
    recognizer.save("distorted")
    return "distorted"


def test_a_miscalibrated_recognizer_is_recalibrated_and_saved(distorted, run):
    line = ["calibrate", distorted, "labels.csv", "--recalibrate", "--out", "better"]
    found = json.loads(run(*line, "--json").out)
    assert found["is_improvement"]
    assert found["log_loss"]["after"] < found["log_loss"]["before"]
    assert found["recognizer"] == "better"
    about = Recognizer.load("better").calibrated_on
    assert about == found["calibration"]
    assert about.endswith(", recalibrated on 24 random images")
    done = run(*line)
    assert done.out.startswith("metric ")
    assert "\nThe recalibration improves the probabilities. " in done.out
    assert done.out.endswith("Saved in better.\n")


def test_a_calibrated_recognizer_is_saved_unchanged(home, run):
    line = ["calibrate", "recognizer", "labels.csv", "--recalibrate"]
    done = run(*line, "--out", "again")
    assert "There is no evidence of miscalibration, so the calibration is kept." in done.out
    assert "They are not applied." in done.out
    assert done.out.endswith("Saved with the unchanged calibration in again.\n")
    first, second = (Recognizer.load(folder) for folder in ("recognizer", "again"))
    assert first.fingerprint == second.fingerprint
    assert "The recognizer was not saved. Add --out FOLDER" in run(*line).out


def test_too_few_images_are_refused(home, run):
    rows = (home / "labels.csv").read_text().splitlines()[:13]
    (home / "few.csv").write_text("\n".join(rows) + "\n")
    done = run("calibrate", "recognizer", "few.csv", "--recalibrate", "--out", "out")
    assert done.code == 1
    assert "requires at least 20 annotated images" in done.err
    assert "got 12. Annotate 8 more images." in done.err
    assert not (home / "out").exists()


@pytest.mark.parametrize("more", [["--unlabelled"], ["--test", "labels.csv"]])
def test_options_of_other_calibrations_are_refused(home, run, more):
    done = run("calibrate", "recognizer", "labels.csv", "--recalibrate", *more)
    assert (done.code, done.out) == (2, "")
    assert "--recalibrate cannot be combined with --unlabelled or --test." in done.err


def test_an_uncalibrated_recognizer_is_refused(home, run):
    line = ["calibrate", "tiny-vit", "labels.csv", "--recalibrate", "--method", "standardized"]
    done = run(*line)
    assert done.code == 1
    assert "recalibrate requires a calibrated recognizer" in done.err
