import numpy as np
import pytest

from surelabel.evaluation import evaluate_pair_scores
from surelabel.evaluation.pair_intervals import image_bootstrap_intervals
from surelabel.metrics import ConfidenceInterval
from surelabel.records.pairs import Pairs


def evaluation(noise, seed=0, n=40, per_image=3):
    random = np.random.default_rng(seed)
    image_rows = np.repeat(np.arange(n), per_image)
    pairs = Pairs([f"{i}" for i in range(n)], [f"text {i}" for i in image_rows], image_rows)
    is_own = np.arange(n)[:, None] == image_rows
    scores = is_own + noise * random.normal(size=is_own.shape)
    return evaluate_pair_scores(scores, pairs, np.exp(-scores))


def test_captions_of_an_image_are_resampled_together():
    """The standard error of a mean over clusters is that of the cluster means."""
    cluster_means = np.random.default_rng(0).normal(size=400)
    values, image_of_query = np.repeat(cluster_means, 5), np.repeat(np.arange(400), 5)
    intervals = image_bootstrap_intervals(
        {"mean": lambda weights: float(weights @ values / weights.sum())}, image_of_query, 400
    )
    interval = intervals["mean"]
    assert interval.value == pytest.approx(values.mean())
    width = 2 * 1.96 * cluster_means.std() / np.sqrt(400)
    assert interval.high - interval.low == pytest.approx(width, rel=0.2)


def test_every_mean_and_every_auroc_has_an_interval_around_its_value():
    direction = evaluation(0.6).directions["caption_to_image"]
    for name, value in direction.metrics.items():
        if name == "median_rank":
            assert name not in direction.intervals
            continue
        interval = direction.intervals[name]
        assert interval.value == pytest.approx(value)
        assert interval.low < value < interval.high or value == interval.high
    for name, prediction in direction.error_predictions.items():
        assert direction.intervals[f"auroc_of_{name}"].value == pytest.approx(prediction.auroc)


def test_the_gain_over_an_equivalent_null_is_zero_on_every_resample():
    direction = evaluation(0.6).directions["image_to_caption"]  # variance = exp(-score)
    gain = direction.intervals["auroc_gain_over_minus_score"]
    assert gain == ConfidenceInterval(0, 0, 0)
    margin = direction.intervals["auroc_gain_over_minus_margin"]
    predictions = direction.error_predictions
    expected = predictions["uncertainty"].auroc - predictions["minus_margin"].auroc
    assert margin.value == pytest.approx(expected)
    assert margin.low < margin.high
