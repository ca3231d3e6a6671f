import json
import re

import numpy as np
import pytest

from surelabel.cli.method_selection import DEFAULT_MAX_PASSES, DEFAULT_MINUTES
from surelabel.recognizer import Recognizer, method_selection

FEW_IMAGES = ["--model", "tiny-rn", "--shots", "2", "--max-passes", "1"]
FEW_STEPS = ["--folds", "2", "--set", "epochs=2"]


@pytest.fixture
def two_methods(monkeypatch):
    """Compare two methods only, to save time."""
    monkeypatch.setattr(method_selection, "selectable_methods", lambda: ["tiles", "linear"])


@pytest.fixture
def vectors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features = np.random.default_rng(0).normal(size=(40, 4))
    np.savez("vectors.npz", features=features, targets=features[:, :2] > 0, names=["lion", "bear"])


def test_fit_without_a_method_prints_the_time_and_saves_the_table(home, run, two_methods):
    done = run("fit", "labels.csv", "--out", "fitted", *FEW_IMAGES, *FEW_STEPS)
    assert done.code == 0, done.err
    assert "Comparing 1 method with 2 folds on 8 images takes about" in done.err
    header, row, description, result, calibration, following = done.out.splitlines()
    assert header.split()[:2] == ["method", "calibration"]
    assert row.split()[:5] == ["linear", "beta,", "2", "folds", "1"]
    assert row.endswith("yes")
    assert description.endswith(
        "Left out: tiles (needs 14 encoder passes, more than the maximum of 1)."
    )
    assert result == "Fitted linear on 8 images for 4 labels. Saved in fitted."
    assert calibration == "Calibration: beta on 8 labelled images (2-fold cross-validation)."
    assert following == "Next: surelabel evaluate fitted OTHER_DATASET"
    assert not list(home.glob("fitted.unfinished*"))
    shown = run("show", "fitted").out
    assert row in shown
    assert description in shown
    assert json.loads(run("show", "fitted", "--json").out)["selection"]["selected"] == "linear"


def test_vectors_are_compared_with_the_encoder_of_vectors(vectors, run):
    done = run("fit", "vectors.npz", "--out", "fitted", *FEW_STEPS, "--json", "--quiet")
    assert done.err == ""
    found = json.loads(done.out)
    results = found["selection"]["results"]
    methods = [result["method"] for result in results]
    assert set(methods) == {"extra_trees", "gradient_boosting", "linear"}
    assert found["selection"]["selected"] == methods[0]
    assert results[0]["encoder_passes"] == 1
    assert Recognizer.load("fitted").encoder.name == "features:4"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes", "2", "--method", "linear"], "--minutes limits the methods .* linear"),
        (["--max-passes", "2", "--set", "method.name=coop"], "--max-passes limits .* method coop"),
        (["--max-passes", "0"], "0 is not in the range x>=1"),
        (["--minutes", "0"], "0.0 is not in the range x>0"),
        (["--set", "method.ratio=0.3"], "got method.ratio=0.3. Choose a method"),
        (["--folds", "99"], "--folds must be at most the number of images"),
        (["--caption-noise", "0.2"], "--caption-noise requires images with captions"),
    ],
)
def test_options_that_do_not_fit_are_refused(vectors, run, options, message):
    done = run("fit", "vectors.npz", "--out", "fitted", *options)
    assert done.code in (1, 2)
    assert re.search(message, done.err)


def test_the_defaults_of_the_help_are_those_of_the_function():
    assert DEFAULT_MINUTES == method_selection.DEFAULT_MINUTES
    assert DEFAULT_MAX_PASSES == method_selection.DEFAULT_MAX_PASSES


def test_two_datasets_are_refused(run):
    done = run("fit", "scenes-80:validation", "scenes-80:test", "--out", "fitted")
    assert "fit without --method requires one annotated dataset; got 2" in done.err
