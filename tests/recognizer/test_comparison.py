import numpy as np
import pytest

import surelabel as sl
from surelabel.data import write_predictions
from surelabel.errors import InputError, UnknownName

RANDOM = np.random.default_rng(0)
TARGETS = RANDOM.integers(0, 2, (60, 2)).astype(float)
LOGITS = RANDOM.normal(2 * TARGETS - 1, 1.5)
NAMES = ["dog", "sofa"]
PATHS = [f"{row}.jpg" for row in range(60)]


@pytest.fixture(scope="module")
def scores():
    return sl.LabelledScores(LOGITS, "logits", columns=NAMES, targets=TARGETS, paths=PATHS)


@pytest.fixture(scope="module")
def calibrated(scores):
    return sl.Recognizer.from_scores("logits", NAMES).calibrate(scores)


def test_calibration_rows_are_compared_with_the_cross_fitted_probabilities_of_evaluate(
    scores, calibrated
):
    raw = sl.Recognizer.from_scores("logits", NAMES)
    found = sl.compare(raw, calibrated, scores, resamples=2)
    evaluation = sl.evaluate(calibrated, scores)
    assert "cross-fitted" in found.second_calibration
    assert found.second_calibration == evaluation.predictions.calibration
    assert found.metrics["log_loss"].second == pytest.approx(evaluation.summary["log_loss"])


def test_a_recognizer_its_folder_its_predictions_and_their_file_are_equal(
    scores, calibrated, tmp_path
):
    calibrated.save(tmp_path / "model")
    other = scores.with_paths([f"other {path}" for path in PATHS])
    predictions = calibrated.predict(other)
    write_predictions(predictions, tmp_path / "predictions.parquet")
    models = [tmp_path / "model", predictions, str(tmp_path / "predictions.parquet")]
    for model in models:
        found = sl.compare(calibrated, model, other, resamples=2)
        assert found.metrics["brier"].difference.value == pytest.approx(0, abs=1e-9)
    assert found.second == models[-1]


def test_aliases_of_recognizers_join_their_labels(scores):
    columns = ["sofa|couch"]
    recognizer = sl.Recognizer.from_scores("logits", columns)
    couch = sl.LabelledScores(
        LOGITS[:, 1:], "logits", columns=columns, names=["couch"], targets=TARGETS[:, 1:]
    )
    other = sl.Predictions(couch.paths, ["Couch"], LOGITS[:, 1:].astype(np.float32))
    assert sl.compare(recognizer, other, couch, resamples=2).names == ["sofa"]


def test_only_random_rows_are_compared(scores, calibrated):
    chosen_by = ["random"] * 40 + ["expected_gain"] * 20
    selection = sl.RowSelection(chosen_by, np.where(np.arange(60) < 40, 0.5, np.nan))
    raw = sl.Recognizer.from_scores("logits", NAMES)
    with pytest.warns(UserWarning, match="The comparison uses 40 annotated rows"):
        found = sl.compare(raw, calibrated, scores.with_row_selection(selection), resamples=2)
    assert found.n_images == 40


def test_a_model_that_does_not_exist_or_shares_no_label_is_refused(scores, calibrated):
    with pytest.raises(UnknownName, match="nothing"):
        sl.compare("nothing", calibrated, scores)
    other = sl.Predictions(PATHS, ["cat"], LOGITS[:, :1].astype(np.float32))
    with pytest.raises(InputError, match="must share at least one label"):
        sl.compare(other, calibrated, scores, resamples=2)
