import numpy as np
import pytest

from surelabel.config import Choice, Run, load_run
from surelabel.data import collection
from surelabel.errors import DataError
from surelabel.recognizer import Recognizer

NAMES = ["lion", "guitar|drum", "car"]


@pytest.fixture(scope="module")
def recognizer():
    train = collection("scenes-80", split="train").take(range(80))
    settings = ["method.name=clip_adapter", "loss.name=asymmetric", "calibrator.name=platt"]
    run = load_run(overrides=[*settings, "epochs=2"])
    return Recognizer(run, NAMES).fit(train).calibrate(train)


@pytest.fixture
def saved(recognizer, tmp_path):
    recognizer.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_what_is_loaded_predicts_the_same(recognizer, saved):
    test = collection("scenes-80", split="test").take(range(10))
    before, after = recognizer.predict(test), Recognizer.load(saved).predict(test)
    np.testing.assert_array_equal(before.scores, after.scores)
    np.testing.assert_array_equal(before.logits, after.logits)
    assert (before.names, before.calibration, before.model) == (
        after.names,
        after.calibration,
        after.model,
    )


def test_zero_shot_without_any_calibration_survives_too(tmp_path):
    first = Recognizer.zero_shot("tiny-rn", ["lion"], templates="a {} on a table")
    first.save(tmp_path / "saved")
    second = Recognizer.load(tmp_path / "saved")
    assert second.calibrated_on is None
    assert second.fingerprint == first.fingerprint


def test_a_prompt_file_is_needed_no_more(tmp_path):
    (tmp_path / "prompts.txt").write_text("a {} here\na drawing of a {}\n")
    first = Recognizer.zero_shot("tiny-vit", ["lion"], templates=str(tmp_path / "prompts.txt"))
    first.save(tmp_path / "saved")
    (tmp_path / "prompts.txt").unlink()
    assert Recognizer.load(tmp_path / "saved").fingerprint == first.fingerprint


@pytest.mark.parametrize(
    "settings",
    [
        {"area": (0.1, 0.3)},
        {"background": ("sky", "sea")},
        {"templates": ("a {} here",)},
        {"fusion_parameter": None},
        {"scale": np.float64(50)},
        {"max_crops": np.int64(2)},
    ],
    ids=str,
)
def test_settings_in_any_form_of_python_are_read_back(settings, tmp_path):
    first = Recognizer(Run(method=Choice("crops", settings)), NAMES)
    first.save(tmp_path / "saved")
    assert Recognizer.load(tmp_path / "saved").fingerprint == first.fingerprint


def test_a_folder_with_something_else_is_left_alone(recognizer, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.txt").write_text("precious")
    with pytest.raises(DataError, match="contains other files"):
        recognizer.save(tmp_path / "photos")
    assert (tmp_path / "photos" / "a.txt").read_text() == "precious"


def test_saving_over_an_older_recognizer_replaces_it_whole(recognizer, saved):
    (saved / "leftover").write_text("")
    recognizer.save(saved)
    assert not (saved / "leftover").exists()


@pytest.mark.parametrize(
    "settings",
    [
        ["method.name=recover_match", "method.depth=1"],
        ["method.name=coop_matching"],
        ["method.name=dualcoop_matching"],
    ],
    ids=lambda settings: settings[0],
)
def test_labels_of_the_fit_are_kept_where_other_labels_are_scored_by_them(settings, tmp_path):
    train, test = (collection("scenes-80", split=s).take(range(56, 80)) for s in ("train", "test"))
    run = load_run(overrides=[*settings, "epochs=1", "calibrator.name=hierarchical"])
    first = Recognizer(run, NAMES).fit(train).calibrate(train)
    first.save(tmp_path / "first")
    assert not (tmp_path / "first" / "fit_names.txt").exists()
    with pytest.warns(UserWarning, match=r"For new labels, .* shared parameters \(beta\)"):
        more = first.with_names(["coffee", *NAMES, "cow"])
    before, after = first.predict(test), more.predict(test)
    np.testing.assert_allclose(after.logits[:, 1:4], before.logits, atol=1e-5)
    assert after.calibration == f"{before.calibration}, new labels with shared parameters"
    more.save(tmp_path / "more")
    assert (tmp_path / "more" / "fit_names.txt").read_text().splitlines() == NAMES
    loaded = Recognizer.load(tmp_path / "more")
    np.testing.assert_array_equal(loaded.predict(test).logits, after.logits)
    (tmp_path / "more" / "fit_names.txt").unlink()
    with pytest.raises(DataError, match="changed after saving"):
        Recognizer.load(tmp_path / "more")
