from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.config import Choice, load_run
from surelabel.data import collection
from surelabel.decisions import record_validation
from surelabel.errors import DataError, InputError, NotFitted
from surelabel.recognizer import Recognizer, guarantee, operating_point
from surelabel.recognizer.calibration_record import restore_calibration_record
from surelabel.records import LabelledFeatures, LabelledScores, RowSelection
from surelabel.records.calibration_description import calibration_provenance

NAMES = [f"label {number}" for number in range(20)]
ABOUT = "platt on 300 labelled images, recalibrated on 40 random images"


def score_rows(n=40, seed=0, *, factor=1.0, level=0.0, selection=None):
    """Return scores whose log-odds are calibrated if they are divided by the factor."""
    random = np.random.default_rng(seed)
    z = random.normal(-1, 2, size=(n, len(NAMES)))
    targets = (random.random(z.shape) < expit(z)).astype(float)
    paths = [f"{seed}-{row}.jpg" for row in range(n)]
    scores = LabelledScores(
        factor * z + level, "logits", columns=NAMES, targets=targets, paths=paths
    )
    return scores if selection is None else scores.with_row_selection(selection)


def calibrated(**changes):
    """Return a recognizer of scores that is calibrated on 300 rows."""
    run = replace(Recognizer.from_scores("logits", NAMES).run, calibrator=Choice("platt"))
    return Recognizer(run, NAMES).calibrate(score_rows(300, seed=1, **changes))


@pytest.fixture(scope="module")
def recalibrated():
    """Return a recognizer and its recalibration on rows with other log-odds."""
    recognizer = calibrated()
    result = recognizer.recalibrate(score_rows(factor=2, level=1))
    return recognizer, result


def test_a_recalibration_multiplies_and_shifts_the_log_odds(recalibrated):
    recognizer, result = recalibrated
    assert result.is_improvement
    rows = score_rows(50, seed=5)
    before, after = (r.predict(rows).logits for r in (calibrated(), recognizer))
    np.testing.assert_allclose(after, result.scale * before + result.shift, atol=1e-4)
    assert recognizer.calibrated_on == ABOUT
    assert ABOUT in repr(recognizer)


def test_a_calibrated_recognizer_is_not_changed():
    recognizer = calibrated()
    fingerprint = recognizer.fingerprint
    result = recognizer.recalibrate(score_rows())
    assert not result.is_improvement
    assert recognizer.fingerprint == fingerprint
    assert recognizer.calibration.recalibration is None


def test_a_recalibrated_recognizer_is_saved_and_loaded(recalibrated, tmp_path):
    recognizer, _ = recalibrated
    recognizer.save(tmp_path / "saved")
    loaded = Recognizer.load(tmp_path / "saved")
    rows = score_rows(50, seed=5)
    np.testing.assert_array_equal(loaded.predict(rows).logits, recognizer.predict(rows).logits)
    assert loaded.fingerprint == recognizer.fingerprint != calibrated().fingerprint
    assert loaded.calibration.recalibration == recognizer.calibration.recalibration
    assert ", recalibrated on 40 random images" in (tmp_path / "saved" / "README.md").read_text()


def test_the_fingerprint_without_recalibration_does_not_depend_on_its_field():
    recognizer = calibrated()
    state = recognizer.calibration.state()
    assert "recalibration" not in state
    fingerprint = recognizer.fingerprint
    recognizer.calibration = restore_calibration_record(state, recognizer.calibration.record)
    assert recognizer.fingerprint == fingerprint


def test_the_record_describes_the_images_of_the_recalibration(recalibrated):
    recognizer, _ = recalibrated
    assert recognizer.calibration.record.images == 40
    thresholds = operating_point(recognizer, "f1")
    assert len(thresholds.values) == len(NAMES)


def test_a_calibration_without_labels_has_a_guarantee_after_a_recalibration():
    recognizer = calibrated()
    recognizer.calibration = replace(recognizer.calibration, uses_labels=False)
    with pytest.raises(NotFitted, match="A guarantee requires a calibration on annotated images"):
        guarantee(recognizer, "at_most_wrong", level=0.3)
    assert recognizer.recalibrate(score_rows(factor=2, level=1)).is_improvement
    assert guarantee(recognizer, "at_most_wrong", level=0.9) is not None


def test_log_odds_of_another_program_can_be_recalibrated_without_a_calibration():
    recognizer = Recognizer.from_scores("logits", NAMES)
    rows = score_rows(factor=2, level=1)
    result = recognizer.recalibrate(rows)
    assert result.is_improvement
    expected = result.scale * rows.features + result.shift
    np.testing.assert_allclose(recognizer.predict(rows).logits, expected, atol=1e-4)
    assert recognizer.calibrated_on == "model, recalibrated on 40 random images"
    assert calibration_provenance(recognizer.calibrated_on) == "labels"


def test_rows_of_the_recalibration_have_cross_fitted_probabilities(recalibrated):
    recognizer, result = recalibrated
    rows = score_rows(factor=2, level=1)
    predictions = recognizer.cross_fitted_predictions(rows, recognizer.predict(rows))
    np.testing.assert_allclose(predictions.logits, result.cross_fitted_logits, atol=1e-4)
    earlier = score_rows(300, seed=1)
    before = calibrated()
    expected = before.cross_fitted_predictions(earlier, before.predict(earlier)).logits
    found = recognizer.cross_fitted_predictions(earlier, recognizer.predict(earlier)).logits
    np.testing.assert_allclose(found, result.scale * expected + result.shift, atol=1e-3)


def test_a_label_shift_is_kept_by_a_recalibration_and_can_follow_it():
    recognizer = calibrated().adapt_to_shift(score_rows(300, seed=2))
    shift = recognizer.calibration.shift
    before = recognizer.predict(score_rows(seed=5)).logits
    result = recognizer.recalibrate(score_rows(factor=2, level=1))
    assert result.is_improvement
    calibration = recognizer.calibration
    assert calibration.shift == ()
    expected = tuple(result.scale * value for value in shift)
    assert calibration.recalibration.label_shifts == pytest.approx(expected)
    after = recognizer.predict(score_rows(seed=5)).logits
    np.testing.assert_allclose(after, result.scale * before + result.shift, atol=1e-4)
    assert calibration_provenance(recognizer.calibrated_on) == "labels"
    recognizer.adapt_to_shift(score_rows(300, seed=3))
    moved = recognizer.predict(score_rows(seed=5)).logits
    difference = np.tile(recognizer.calibration.shift, (40, 1))
    np.testing.assert_allclose(moved - after, difference, atol=1e-4)
    assert recognizer.calibrated_on.endswith(
        "adapted to 300 other images, recalibrated on 40 random images, adapted to 300 other images"
    )
    assert calibration_provenance(recognizer.calibrated_on) == "no labels"
    again = recognizer.calibration.description
    recognizer.adapt_to_shift(score_rows(300, seed=3))
    assert recognizer.calibration.description == again


def test_new_labels_keep_the_scale_and_the_shift():
    record = replace(calibrated().calibration, record=None)
    changed = record.recalibrated(0.5, 1.0, calibrated().calibration.record)
    assert changed.for_new_names().recalibration == changed.recalibration
    moved = replace(record, shift=(1.0,) * 20).recalibrated(
        0.5, 1.0, calibrated().calibration.record
    )
    with pytest.warns(UserWarning, match="platt, adapted to a label shift"):
        found = moved.for_new_names()
    assert (found.recalibration.scale, found.recalibration.label_shifts) == (0.5, ())


def test_two_recalibrations_are_one_after_the_other():
    recognizer = calibrated()
    first = recognizer.recalibrate(score_rows(factor=2, level=1))
    second = recognizer.recalibrate(score_rows(60, seed=7, factor=0.5))
    assert first.is_improvement
    assert second.is_improvement
    total = recognizer.calibration.recalibration
    assert total.scale == pytest.approx(first.scale * second.scale)
    assert total.shift == pytest.approx(second.scale * first.shift + second.shift)


def test_only_random_rows_are_used():
    chosen_by = ["random"] * 25 + ["query"] * 15
    probability = np.array([0.5] * 25 + [np.nan] * 15)
    rows = score_rows(factor=2, level=1, selection=RowSelection(chosen_by, probability))
    with pytest.warns(UserWarning, match="15 annotated rows are left out"):
        result = calibrated().recalibrate(rows)
    assert result.n_images == 25
    few = RowSelection(["random"] * 10 + ["query"] * 30, np.array([0.5] * 10 + [np.nan] * 30))
    with (
        pytest.warns(UserWarning, match="30 annotated rows are left out"),
        pytest.raises(InputError, match=r"at least 20 .* got 10\. Annotate 10 more"),
    ):
        calibrated().recalibrate(score_rows(selection=few))


def test_rows_of_the_fit_are_left_out():
    random = np.random.default_rng(0)
    features = random.normal(size=(60, 8)).astype(np.float32)
    targets = (features[:, :3] > 0).astype(float)
    names = ["a", "b", "c"]
    run = load_run(overrides=["encoder.name=features:8", "method.name=linear", "epochs=3"])
    rows = LabelledFeatures(features, names, targets)
    recognizer = Recognizer(run, names).fit(rows.take(range(35)))
    with pytest.warns(UserWarning, match="35 annotated images are left out, because the recogn"):
        result = recognizer.recalibrate(rows)
    assert result.n_images == 25
    with (
        pytest.warns(UserWarning, match="35 annotated images are left out"),
        pytest.raises(InputError, match=r"got 15\. Annotate 5 more images"),
    ):
        recognizer.recalibrate(rows.take(range(50)))


def test_images_of_a_recalibration_are_used_rows():
    images = collection("scenes-80", split="test").take(range(40))
    recognizer = Recognizer.zero_shot("tiny-vit", images.names)
    record = record_validation(recognizer.predict(images).logits, images.targets)
    recognizer.calibration = recognizer.calibration.recalibrated(3.0, 2.0, record)
    result = recognizer.recalibrate(images)
    assert result.is_improvement
    assert len(recognizer.used_rows.calibration) == 40
    assert recognizer.calibrated_on.endswith("recalibrated on 40 random images")


def test_what_cannot_be_recalibrated_is_refused():
    with pytest.raises(NotFitted, match="recalibrate requires a calibrated recognizer"):
        Recognizer.from_scores("cosines", NAMES).recalibrate(score_rows())
    with pytest.raises(InputError, match="requires annotated images; got images without labels"):
        Recognizer.zero_shot("tiny-vit", ["lion"]).recalibrate(["a.jpg"])
    run = load_run(overrides=["encoder.name=features:8", "method.name=linear"])
    unfitted = Recognizer(run, ["a"])
    with pytest.raises(NotFitted, match="must be fitted on labels first"):
        unfitted.recalibrate(score_rows())
    cosines = Recognizer.from_scores("cosines", NAMES)
    with pytest.raises(NotFitted, match="apply_recalibration requires a calibrated recognizer"):
        cosines.apply_recalibration(1, 0, np.zeros((1, 1)), 0, 0, keys=np.empty(0, np.uint64))


def test_a_damaged_recalibration_is_refused(recalibrated, tmp_path):
    recognizer, _ = recalibrated
    recognizer.save(tmp_path / "saved")
    path = tmp_path / "saved" / "calibration.json"
    text = path.read_text()
    path.write_text(text.replace('"recalibration": {', '"recalibration": {"label_shifts": [1],'))
    with pytest.raises(DataError, match=r"must contain 20 labels, as in names\.txt; got 1"):
        Recognizer.load(tmp_path / "saved")
    scale = recognizer.calibration.recalibration.scale
    path.write_text(text.replace(f'"scale": {scale}', f'"scale": {scale * 1.01}'))
    with pytest.raises(DataError, match="was changed after saving"):
        Recognizer.load(tmp_path / "saved")
