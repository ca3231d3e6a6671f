"""Probabilities without a label, held against the labels that were there all the time."""

import json

import numpy as np
import pytest
from PIL import Image
from scipy.special import expit

from surelabel.backbones import load_backbone
from surelabel.config import load_run
from surelabel.data import FeatureCache, collection
from surelabel.encoding import encode, remembering
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.methods import ZeroShot
from surelabel.metrics import brier_skill, ece
from surelabel.recognizer import Recognizer, guarantee, operating_point
from surelabel.recognizer.calibrating import restored
from surelabel.recognizer.labelfree import calibrated_without_labels

SCENES = collection("scenes-80", split="train").take(range(25))
PATHS = [str(path) for path in SCENES.paths]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return FeatureCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def backbone(cache):
    return remembering(load_backbone("tiny-vit"), cache)


@pytest.fixture(scope="module")
def calibrate(backbone, cache):
    """Calibration of zero-shot scores, and these scores."""

    def call(names, paths=PATHS, overrides=(), scores=None):
        run = load_run(overrides=["method.name=zero_shot", *overrides])
        found = encode(backbone, paths, cache=cache, workers=0)
        raw = ZeroShot(backbone, names)(found.features).numpy() if scores is None else scores
        return calibrated_without_labels(run, backbone, names, raw, paths, cache=cache), raw

    return call


@pytest.fixture(scope="module")
def found(calibrate):
    return calibrate(list(SCENES.names))


def test_a_few_pictures_without_labels_are_about_as_honest_as_with(found):
    calibration, raw = found
    p, truth = expit(calibration.logits(raw)), SCENES.targets
    assert ece(p, truth) < 0.015
    assert brier_skill(p, truth) > 0.25
    assert p.sum() == pytest.approx(truth.sum(), rel=0.25)


def test_other_scores_of_the_same_pictures_find_a_level_of_their_own(calibrate, found):
    plain, raw = found
    other, _ = calibrate(list(SCENES.names), overrides=["calibrator.name=platt"], scores=raw / 9)
    assert other.name == "platt"
    p = expit(other.logits(raw / 9))
    assert p.sum() == pytest.approx(expit(plain.logits(raw)).sum(), rel=0.1)


def test_it_says_on_what_it_rests_also_when_read_back(found):
    calibration, raw = found
    assert calibration.about == "beta without labels: from what parts of 25 pictures show"
    state = json.loads(json.dumps(calibration.state()))
    back = restored(state, calibration.record)
    assert not back.labelled
    np.testing.assert_array_equal(back.logits(raw), calibration.logits(raw))
    assert not calibration.for_other_names().labelled
    with pytest.raises(DataError, match=r"labelled .* true or false. Got 1"):
        restored(state | {"labelled": 1})


def test_its_record_is_a_promise_for_goals_and_no_ground_for_guarantees(found):
    calibration, raw = found
    np.testing.assert_allclose(calibration.record.present, calibration.record.expected)
    recognizer = Recognizer.zero_shot("tiny-vit", list(SCENES.names))
    recognizer.calibration = calibration
    shown = operating_point(recognizer, "as_many").shown(expit(calibration.logits(raw)))
    assert shown.sum() == pytest.approx(SCENES.targets.sum(), rel=0.25)
    with pytest.raises(NotFitted, match="calibrated without: calibrate it on 20"):
        guarantee(recognizer, "at_most_wrong")


def test_a_name_is_not_held_against_itself_under_any_spelling(calibrate, found):
    alone, raw = calibrate(["King of beasts | LION"])
    column = list(SCENES.names).index("lion")
    expected = found[0].record.present[column, 0]
    assert expit(alone.logits(raw)).sum() > 0.3 * expected


def test_own_background_words_take_their_share(calibrate):
    names = ["lion", "guitar", "car"]
    without, raw = calibrate(names)
    words = json.dumps(["big cat", "auto", "instrument"])
    some, _ = calibrate(names, overrides=[f"method.background={words}"])
    assert expit(some.logits(raw)).sum() < expit(without.logits(raw)).sum()


def test_a_name_that_no_picture_shows_is_rare(calibrate):
    found, raw = calibrate(["unicorn", "volcano", "zzz"])
    assert expit(found.logits(raw)).mean() < 0.02


def test_ten_pictures_are_enough_for_numbers_and_too_few_for_a_record(calibrate):
    found, raw = calibrate(["lion", "guitar"], PATHS[:10])
    assert np.isfinite(found.logits(raw)).all()
    assert found.record is None
    assert found.about.endswith("parts of 10 pictures show")


def test_identical_pictures_are_all_as_likely(calibrate):
    found, raw = calibrate(["lion"], PATHS[:1] * 5)
    p = expit(found.logits(raw))
    assert np.ptp(p) == 0
    assert 0 < p[0, 0] < 1


def test_many_names_are_each_rare_and_finite(calibrate):
    names = [f"{name} {i}" for name in SCENES.names[:10] for i in range(30)]
    found, raw = calibrate(names, PATHS[:5])
    p = expit(found.logits(raw))
    assert p.shape == (5, 300)
    assert 0 < p.sum(axis=1).mean() < 10


def test_what_cannot_be_read_is_left_out(calibrate, backbone, cache, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    Image.new("RGB", (1, 1)).save(tmp_path / "tiny.png")
    paths = [PATHS[0], str(tmp_path / "bad.png"), str(tmp_path / "tiny.png"), PATHS[1]]
    raw = np.arange(8.0).reshape(4, 2)
    run = load_run()
    found = calibrated_without_labels(run, backbone, ["lion", "car"], raw, paths, cache=cache)
    assert "of 3 pictures" in found.about
    again = calibrated_without_labels(
        run, backbone, ["lion", "car"], raw[[0, 2, 3]], [paths[i] for i in (0, 2, 3)], cache=cache
    )
    np.testing.assert_array_equal(found.logits(raw), again.logits(raw))
    with pytest.raises(DataError, match="None of 1 pictures could be read"):
        calibrated_without_labels(run, backbone, ["lion"], raw[:1, :1], paths[1:2])


def test_scores_must_be_of_these_pictures_and_names(backbone):
    with pytest.raises(InputError, match=r"\(2, 1\). Got \(2, 2\)"):
        calibrated_without_labels(load_run(), backbone, ["lion"], np.zeros((2, 2)), PATHS[:2])


def test_an_encoder_without_texts_cannot_say_what_parts_show():
    with pytest.raises(ConfigError, match="features:8"):
        calibrated_without_labels(
            load_run(), load_backbone("features:8"), ["lion"], np.zeros((1, 1)), PATHS[:1]
        )
