import numpy as np
import pytest

from surelabel.evaluation import evaluate_predictions
from surelabel.evaluation.confidence_intervals import evaluation_confidence_intervals
from surelabel.evaluation.ranking_values import prediction_ranking_values
from surelabel.records import LabelledImages, Predictions

SCORES = np.array([[0.1, 3.0], [0.4, 2.0], [0.2, 1.0]], dtype=np.float32)


def predictions_with(logits):
    if logits is None:
        return Predictions(list("xyz"), ["a", "b"], SCORES)
    return Predictions(list("xyz"), ["a", "b"], SCORES, np.array(logits, np.float32), "any")


@pytest.mark.parametrize(
    "logits", [None, [[-2, 3], [2, 2], [0, 0]], [[1, 40], [1, 40], [1, 40]]], ids=str
)
def test_scores_rank_images_whose_logits_rise_with_the_scores(logits):
    np.testing.assert_array_equal(prediction_ranking_values(predictions_with(logits)), SCORES)


def test_logits_rank_images_if_the_calibrator_changes_their_order():
    found = prediction_ranking_values(predictions_with([[5, 0], [-1, 0], [2, -3]]))
    assert np.argsort(-found[:, 0]).tolist() == [0, 2, 1]
    assert np.argsort(-found[:, 1]).tolist() == [0, 1, 2]  # a tie of logits, broken by scores


def test_images_with_equal_scores_may_have_different_logits_and_equal_pairs_equal_ranks():
    scores = np.array([[1.0], [1.0], [0.0], [0.0]], dtype=np.float32)
    logits = np.array([[2.0], [-2.0], [1.0], [1.0]], dtype=np.float32)
    found = prediction_ranking_values(Predictions(list("wxyz"), ["a"], scores, logits, "any"))
    assert found[:, 0].tolist() == [2, 0, 1, 1]


def test_the_map_and_its_interval_are_those_of_the_calibrated_order():
    targets = np.array([[1, 1], [0, 0], [0, 0]], dtype=float)
    images = LabelledImages(list("xyz"), ["a", "b"], targets, np.ones((3, 2), dtype=bool))
    calibrated = predictions_with([[5, 1], [-1, 0], [2, -3]])
    before = evaluate_predictions(predictions_with([[-2, 3], [2, 2], [0, 0]]), images)
    after = evaluate_predictions(calibrated, images)
    assert before.summary["mean_average_precision"] == pytest.approx((1 / 3 + 1) / 2)
    assert after.summary["mean_average_precision"] == 1
    assert evaluation_confidence_intervals(after)["mean_average_precision"].high == 1
