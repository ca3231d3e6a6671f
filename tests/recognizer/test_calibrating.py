"""Calibrate with labels, and without any, compared with the labels."""

import json
import tracemalloc

import numpy as np
import pytest
from PIL import Image
from scipy.special import expit

from surelabel import mapped_arrays
from surelabel.calibration import CALIBRATORS, AdaptiveTemperature, cross_fitted_logits
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.decisions import record_validation
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.features import FeatureCache, add_text_feature_cache, encode_image_files
from surelabel.methods import ZeroShot
from surelabel.metrics import brier_skill, ece
from surelabel.recognizer import Recognizer, calibrating, guarantee, operating_point
from surelabel.recognizer.calibrating import (
    check_recognizer_calibrator,
    fit_recognizer_calibration,
    fit_recognizer_calibration_without_labels,
)
from surelabel.recognizer.calibration_record import restore_calibration_record
from surelabel.records import LabelledFeatures

NAMES = ["lion", "guitar", "car"]
SCENES = collection("scenes-80", split="train").take(range(25))
PATHS = [str(path) for path in SCENES.paths]


def decisions(n=400, level=(-1.0, 0.0, -2.0), seed=0):
    """Calibrated log-odds, and targets sampled from them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3)) * 2 + level
    return logits, (rng.random((n, 3)) < expit(logits)).astype(float)


def made(name="platt", known=None, n=400, **level):
    logits, targets = decisions(n, **level)
    known = np.ones_like(targets, dtype=bool) if known is None else known
    run = load_run(overrides=[f"calibrator.name={name}"])
    return fit_recognizer_calibration(run, logits, targets, known)


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 8)).astype(np.float32)
    targets = (features[:, :3] + rng.normal(size=(n, 3)) > 1).astype(float)
    return LabelledFeatures(features, NAMES, targets)


def recognizer(*settings):
    given = ["encoder.name=features:8", "method.name=linear", "epochs=3", *settings]
    return Recognizer(load_run(overrides=given), NAMES).fit(rows())


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return FeatureCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def encoder(cache):
    return add_text_feature_cache(load_encoder("tiny-vit"), cache)


@pytest.fixture(scope="module")
def calibrate(encoder, cache):
    """Calibration of zero-shot scores, and these scores."""

    def call(names, paths=PATHS, overrides=(), scores=None):
        run = load_run(overrides=["method.name=zero_shot", *overrides])
        found = encode_image_files(encoder, paths, cache=cache, workers=0)
        raw = ZeroShot(encoder, names)(found.features).numpy() if scores is None else scores
        return fit_recognizer_calibration_without_labels(
            run, encoder, names, raw, paths, cache=cache
        ), raw

    return call


@pytest.fixture(scope="module")
def found(calibrate):
    return calibrate(list(SCENES.names))


def test_it_says_on_how_many_images_with_known_labels_it_was_fitted():
    known = np.ones((400, 3), dtype=bool)
    known[:100] = False
    found = made(known=known)
    assert found.description == "platt on 300 labelled images"
    assert found.record.images == 300


def test_the_record_is_of_calibrators_that_had_not_seen_the_image():
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(size=(60, 1)), (rng.random((60, 1)) < 0.3).astype(float)
    run = load_run(overrides=["calibrator.name=isotonic_per_class", "calibrator.pseudo_count=0.01"])
    found = fit_recognizer_calibration(run, scores, targets, targets >= 0)
    in_sample = record_validation(found.logits(scores), targets)
    cross_fitted = record_validation(
        cross_fitted_logits(run.entry("calibrator"), scores, targets), targets
    )
    np.testing.assert_array_equal(
        found.record.predicted_positives, cross_fitted.predicted_positives
    )
    assert not np.array_equal(in_sample.predicted_positives, cross_fitted.predicted_positives)


def test_few_images_calibrate_and_leave_no_record():
    assert made(n=19).record is None
    assert made(n=20).record.images == 20


def test_a_single_present_label_calibrates_and_leaves_a_record():
    logits, targets = decisions(30)[0], np.zeros((30, 3))
    targets[3, 1] = 1
    found = fit_recognizer_calibration(load_run(), logits, targets, targets >= 0)
    assert np.isfinite(found.logits(logits)).all()
    assert found.record.images == 30
    np.testing.assert_array_equal(found.record.true_positives[:, 0], [0, 1, 0])


@pytest.mark.parametrize("name", CALIBRATORS)
def test_the_record_has_logits_that_do_not_depend_on_the_own_targets(name, monkeypatch):
    """The record contains sums only, so its logits are read where the record is computed."""
    source, recorded = rows(n=20, seed=1), []

    def record_and_keep(logits, targets, known):
        recorded.append(logits)
        return record_validation(logits, targets, known)

    monkeypatch.setattr(calibrating, "record_validation", record_and_keep)
    fitted = recognizer(f"calibrator.name={name}")
    fitted.calibrate(source)
    for row in range(20):
        targets = source.targets.copy()
        targets[row] = 1 - targets[row]
        fitted.calibrate(LabelledFeatures(source.features, NAMES, targets))
        assert fitted.calibration.record.images == 20
        np.testing.assert_array_equal(recorded[-1][row], recorded[0][row])
    assert any((logits != recorded[0]).any() for logits in recorded)


def test_nothing_present_is_an_error():
    logits, targets = decisions(30)[0], np.zeros((30, 3))
    with pytest.raises(InputError, match="got 0 positive among 90 known"):
        fit_recognizer_calibration(load_run(), logits, targets, targets >= 0)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_scores_without_a_level_need_a_calibrator_that_finds_one(name):
    run = load_run(overrides=[f"calibrator.name={name}"])
    check_recognizer_calibrator(run, None)
    if CALIBRATORS[name].accepts_raw_scores:
        check_recognizer_calibrator(run, "ranking")
    else:
        with pytest.raises(
            ConfigError, match=f"{name} requires log-odds; got raw scores of ranking"
        ):
            check_recognizer_calibrator(run, "ranking")


def test_the_level_is_asked_for_before_a_image_is_encoded():
    with pytest.raises(ConfigError, match="got raw scores of two_way"):
        recognizer("loss.name=two_way", "calibrator.name=temperature").calibrate(["no/such.png"])
    zero = Recognizer(
        load_run(overrides=["method.name=zero_shot", "calibrator.name=temperature"]), NAMES
    )
    with pytest.raises(ConfigError, match="got raw scores of zero_shot"):
        zero.calibrate(["no/such.png"])


def test_a_few_images_without_labels_are_about_as_well_calibrated_as_with(found):
    calibration, raw = found
    p, truth = expit(calibration.logits(raw)), SCENES.targets
    assert ece(p, truth) < 0.015
    assert brier_skill(p, truth) > 0.25
    assert p.sum() == pytest.approx(truth.sum(), rel=0.25)


def test_other_scores_of_the_same_images_find_a_level_of_their_own(calibrate, found):
    plain, raw = found
    other, _ = calibrate(list(SCENES.names), overrides=["calibrator.name=platt"], scores=raw / 9)
    assert other.name == "platt"
    p = expit(other.logits(raw / 9))
    assert p.sum() == pytest.approx(expit(plain.logits(raw)).sum(), rel=0.1)


def test_it_says_on_what_it_rests_also_when_read_back(found):
    calibration, raw = found
    assert calibration.description == "beta on pseudo-labels of 25 images without labels"
    state = json.loads(json.dumps(calibration.state()))
    back = restore_calibration_record(state, calibration.record)
    assert not back.uses_labels
    np.testing.assert_array_equal(back.logits(raw), calibration.logits(raw))
    assert not calibration.for_new_names().uses_labels
    with pytest.raises(DataError, match=r"labelled .* true or false; got 1"):
        restore_calibration_record(state | {"labelled": 1})


def test_its_record_is_a_promise_for_goals_and_no_ground_for_guarantees(found):
    calibration, raw = found
    np.testing.assert_allclose(
        calibration.record.true_positives, calibration.record.expected_true_positives
    )
    recognizer = Recognizer.zero_shot("tiny-vit", list(SCENES.names))
    recognizer.calibration = calibration
    shown = operating_point(recognizer, "expected_count").predict(expit(calibration.logits(raw)))
    assert shown.sum() == pytest.approx(SCENES.targets.sum(), rel=0.25)
    with pytest.raises(
        NotFitted, match=r"got a calibration without labels\. Run `surelabel calibrate .* with 20"
    ):
        guarantee(recognizer, "at_most_wrong")


def test_a_name_is_not_held_against_itself_under_any_spelling(calibrate, found):
    alone, raw = calibrate(["King of beasts | LION"])
    column = list(SCENES.names).index("lion")
    expected = found[0].record.true_positives[column, 0]
    assert expit(alone.logits(raw)).sum() > 0.3 * expected


def test_own_background_words_take_their_share(calibrate):
    names = ["lion", "guitar", "car"]
    without, raw = calibrate(names)
    words = json.dumps(["big cat", "auto", "instrument"])
    some, _ = calibrate(names, overrides=[f"method.background={words}"])
    assert expit(some.logits(raw)).sum() < expit(without.logits(raw)).sum()


def test_a_name_that_no_image_shows_is_rare(calibrate):
    found, raw = calibrate(["unicorn", "volcano", "zzz"])
    assert expit(found.logits(raw)).mean() < 0.02


def test_ten_images_are_enough_for_numbers_and_too_few_for_a_record(calibrate):
    found, raw = calibrate(["lion", "guitar"], PATHS[:10])
    assert np.isfinite(found.logits(raw)).all()
    assert found.record is None
    assert found.description.endswith("pseudo-labels of 10 images without labels")


def test_identical_images_are_all_as_likely(calibrate):
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


def test_what_cannot_be_read_is_left_out(calibrate, encoder, cache, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no image")
    Image.new("RGB", (1, 1)).save(tmp_path / "tiny.png")
    paths = [PATHS[0], str(tmp_path / "bad.png"), str(tmp_path / "tiny.png"), PATHS[1]]
    raw = np.arange(8.0).reshape(4, 2)
    run = load_run()
    found = fit_recognizer_calibration_without_labels(
        run, encoder, ["lion", "car"], raw, paths, cache=cache
    )
    assert "of 3 images" in found.description
    again = fit_recognizer_calibration_without_labels(
        run, encoder, ["lion", "car"], raw[[0, 2, 3]], [paths[i] for i in (0, 2, 3)], cache=cache
    )
    np.testing.assert_array_equal(found.logits(raw), again.logits(raw))
    with pytest.raises(DataError, match="got 1 unreadable image"):
        fit_recognizer_calibration_without_labels(run, encoder, ["lion"], raw[:1, :1], paths[1:2])


def test_scores_must_be_of_these_images_and_names(encoder):
    with pytest.raises(InputError, match=r"shape \(2, 1\), .*; got \(2, 2\)\. Give"):
        fit_recognizer_calibration_without_labels(
            load_run(), encoder, ["lion"], np.zeros((2, 2)), PATHS[:2]
        )


def test_an_encoder_without_texts_cannot_say_what_parts_show():
    with pytest.raises(ConfigError, match="features:8"):
        fit_recognizer_calibration_without_labels(
            load_run(), load_encoder("features:8"), ["lion"], np.zeros((1, 1)), PATHS[:1]
        )


def test_the_vectors_of_the_images_reach_the_calibrator_and_are_released():
    source, other = rows(n=140, seed=1), rows(n=30, seed=2)
    fitted = recognizer("calibrator.name=adaptive_temperature").calibrate(source)
    calibration_images = fitted.predict(source)
    raw = fitted.logits_of(calibration_images.scores)
    expected = AdaptiveTemperature().with_image_vectors(calibration_images.features)
    assert np.abs(expected.fit(raw, source.targets).weights_).max() > 0
    predictions = fitted.predict(other)
    logits = expected.with_image_vectors(predictions.features).logits(
        fitted.logits_of(predictions.scores)
    )
    np.testing.assert_allclose(predictions.logits, logits, rtol=1e-5)
    assert fitted.calibration.record.images == 140
    with pytest.raises(ConfigError, match="adaptive_temperature requires the vector of each image"):
        fitted.calibration.logits(raw)
    with pytest.raises(ConfigError, match="adaptive_temperature requires the vector of each image"):
        fitted.calibration.adapt_to_shift(raw)


def test_temperatures_are_used_in_folds_shifts_and_after_loading(tmp_path):
    settings = ["encoder.name=features:8", "method.name=linear", "epochs=2"]
    run = load_run(overrides=[*settings, "calibrator.name=adaptive_temperature"])
    fitted = Recognizer(run, NAMES).fit(rows(n=140), folds=2)
    assert fitted.calibrated_on.startswith("adaptive_temperature on 140 labelled rows (2-fold")
    assert fitted.adapt_to_shift(rows(n=100, seed=3)).calibration.shift != ()
    fitted.save(tmp_path / "saved")
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.fingerprint == fitted.fingerprint
    other = rows(n=30, seed=2)
    np.testing.assert_array_equal(loaded.predict(other).logits, fitted.predict(other).logits)


def test_without_labels_the_calibrator_needs_the_vectors_too(encoder, cache):
    raw = np.random.default_rng(0).normal(size=(25, 2))
    vectors = encode_image_files(encoder, PATHS, cache=cache, workers=0).features.pooled.numpy()
    run = load_run(overrides=["calibrator.name=adaptive_temperature"])
    found = fit_recognizer_calibration_without_labels(
        run, encoder, ["lion", "car"], raw, PATHS, image_vectors=vectors, cache=cache
    )
    assert found.logits(raw, vectors).shape == (25, 2)
    assert found.description.startswith("adaptive_temperature on pseudo-labels of 25 images")
    with pytest.raises(ConfigError, match="adaptive_temperature requires the vector of each image"):
        fit_recognizer_calibration_without_labels(
            run, encoder, ["lion", "car"], raw, PATHS, cache=cache
        )


def test_the_labels_of_the_fit_are_stored_only_for_calibrators_that_use_texts():
    logits, targets = decisions(30)
    for name, expected in (("dac", tuple(NAMES)), ("platt", ())):
        run = load_run(overrides=[f"calibrator.name={name}"])
        found = fit_recognizer_calibration(
            run, logits, targets, targets >= 0, names_with_aliases=NAMES
        )
        assert found.fit_labels == expected
        assert ("labels" in found.state()) == bool(expected)
        assert restore_calibration_record(found.state()).fit_labels == expected
    with pytest.raises(DataError, match=r"labels in calibration\.json must be a list of strings"):
        restore_calibration_record(found.state() | {"labels": ["lion", 3]})


@pytest.mark.parametrize("name", ["cross_validated", "hierarchical", "vector", "isotonic"])
def test_the_calibration_of_arrays_in_files_is_the_same(name, monkeypatch):
    states = []
    for min_bytes in (2**22, 1):
        monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", min_bytes)
        known = np.arange(1200).reshape(400, 3) % 7 > 0
        calibration = made(name, known)
        record = calibration.record.state()
        states.append((repr(calibration.calibrator.state()), calibration.description, record))
    assert states[0][:2] == states[1][:2]
    for key, value in states[0][2].items():
        np.testing.assert_array_equal(value, states[1][2][key])


@pytest.mark.parametrize("name", ["beta", "hierarchical", "vector", "platt", "temperature"])
def test_a_calibrator_takes_at_most_40_bytes_of_memory_for_each_image_and_label(name, monkeypatch):
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 2**14)
    peaks, sizes = [], (500, 2000)
    for n_images in sizes:
        rng = np.random.default_rng(0)
        logits = rng.normal(size=(n_images, 80)) * 2 - 1
        targets = (rng.random(logits.shape) < expit(logits)).astype(float)
        known = np.ones_like(targets, dtype=bool)
        tracemalloc.start()
        CALIBRATORS[name]().fit(logits, targets, known).logits(logits)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / (80 * (sizes[1] - sizes[0])) <= 40
