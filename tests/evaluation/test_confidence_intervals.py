import numpy as np
import pytest

from surelabel.evaluation import evaluate_predictions, evaluation_confidence_intervals
from surelabel.metrics import bootstrap_interval, brier_skill
from surelabel.records import LabelledImages, Predictions


def judged(calibration="platt", n=60):
    random = np.random.default_rng(0)
    names, paths = ["a", "b", "c"], [f"{i}.jpg" for i in range(n)]
    labelled = LabelledImages(paths, names, random.integers(0, 2, (n, 3)))
    logits = (random.normal(size=(n, 3)) + labelled.targets).astype(np.float32)
    return evaluate_predictions(Predictions(paths, names, logits, logits, calibration), labelled)


def test_an_interval_is_that_of_whole_images_drawn_again():
    found = judged()
    p, y = found.predictions.probabilities, found.targets
    assert evaluation_confidence_intervals(found)["brier_skill"] == bootstrap_interval(
        brier_skill, p, y
    )


def test_values_are_those_of_the_summary_and_lie_inside():
    found = judged()
    for name, interval in evaluation_confidence_intervals(found).items():
        assert interval.value == pytest.approx(found.summary[name])
        assert interval.low < interval.value < interval.high


def test_scores_have_an_interval_of_their_ranking_only():
    assert list(evaluation_confidence_intervals(judged(None))) == ["mean_average_precision"]


def test_a_single_image_has_no_interval():
    assert np.isnan(evaluation_confidence_intervals(judged(n=1))["log_loss"].low)
