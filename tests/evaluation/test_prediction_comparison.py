import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.evaluation import compare_predictions, evaluate_predictions
from surelabel.metrics import (
    POOLED,
    RANKING,
    average_precision_per_class,
    brier_per_class,
    paired_bootstrap_interval,
)
from surelabel.records import LabelledImages, Predictions

NAMES = ["dog", "cat", "fish"]


def dataset(n=60, seed=0, calibration="platt"):
    random = np.random.default_rng(seed)
    targets = random.random((n, 3)) < [0.5, 0.3, 0]
    targets[::20, 2] = True
    paths = [f"{row}.jpg" for row in range(n)]
    scores = [random.normal(s * targets - 1, 1).astype(np.float32) for s in (1, 3)]
    first, second = (Predictions(paths, NAMES, x, x, calibration) for x in scores)
    return first, second, LabelledImages(paths, NAMES, targets.astype(float))


@pytest.fixture(scope="module")
def compared():
    return compare_predictions(*dataset(), resamples=50, seed=3)


@pytest.mark.parametrize("metric", POOLED)
def test_a_metric_has_the_values_of_an_evaluation_and_the_paired_interval(compared, metric):
    first, second, labelled = dataset()
    found = compared.metrics[metric]
    for value, side in ((found.first, first), (found.second, second)):
        assert value == pytest.approx(evaluate_predictions(side, labelled).summary[metric])
    values = [p.scores if metric in RANKING else p.probabilities for p in (second, first)]
    expected = paired_bootstrap_interval(
        POOLED[metric], *values, labelled.targets, resamples=50, seed=3
    )
    ends = (found.difference.value, found.difference.low, found.difference.high)
    assert ends == pytest.approx((expected.value, expected.low, expected.high), abs=1e-12)


def test_labels_have_the_intervals_of_their_column(compared):
    first, second, labelled = dataset()
    for metric, function, values in (
        ("average_precision", average_precision_per_class, [p.scores for p in (second, first)]),
        ("brier", brier_per_class, [p.probabilities for p in (second, first)]),
    ):
        labels = compared.labels[metric]
        for column in range(3):
            interval = paired_bootstrap_interval(
                lambda *arrays, f=function, c=column: f(*arrays)[c],
                *values,
                labelled.targets,
                resamples=50,
                seed=3,
            )
            ends = [labels.difference[column], labels.low[column], labels.high[column]]
            expected = [interval.value, interval.low, interval.high]
            assert ends == pytest.approx(expected, abs=1e-12)


def test_a_model_against_itself_has_differences_of_exactly_zero():
    first, _, labelled = dataset()
    found = compare_predictions(first, first, labelled, resamples=20)
    for metric in found.metrics.values():
        interval = metric.difference
        assert (interval.value, interval.low, interval.high) == (0, 0, 0)
    for labels in found.labels.values():
        assert not np.concatenate([labels.difference, labels.low, labels.high]).any()
        assert not labels.is_different.any()
        tested = labels.adjusted_p_values[~np.isnan(labels.adjusted_p_values)]
        assert (tested == 1).all()


def test_swapping_the_models_changes_the_sign(compared):
    first, second, labelled = dataset()
    swapped = compare_predictions(second, first, labelled, resamples=50, seed=3)
    for name, metric in compared.metrics.items():
        one, other = metric.difference, swapped.metrics[name].difference
        assert (one.value, one.low, one.high) == pytest.approx(
            (-other.value, -other.high, -other.low), abs=1e-12
        )
    for name, labels in compared.labels.items():
        np.testing.assert_allclose(labels.low, -swapped.labels[name].high, atol=1e-12)
        p_values = swapped.labels[name].adjusted_p_values
        np.testing.assert_allclose(labels.adjusted_p_values, p_values)


def test_if_one_model_is_uncalibrated_only_rankings_are_compared():
    first, _, labelled = dataset(calibration=None)
    _, second, _ = dataset()
    found = compare_predictions(first, second, labelled, resamples=2)
    assert (found.metrics.keys(), list(found.labels)) == (RANKING.keys(), ["average_precision"])
    assert not found.is_calibrated


def test_a_label_with_too_few_positives_is_not_tested(compared):
    assert compared.n_positives[2] == 3
    for labels in compared.labels.values():
        assert np.isnan(labels.adjusted_p_values).tolist() == [False, False, True]


def test_a_much_better_model_differs_on_every_tested_label():
    found = compare_predictions(*dataset(n=400), resamples=30)
    assert found.labels["average_precision"].is_different.all()
    assert found.metrics["mean_average_precision"].difference.low > 0


def test_progress_counts_resamples_and_their_number_is_checked():
    calls = []
    compare_predictions(*dataset(), resamples=3, progress=lambda *call: calls.append(call))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(ConfigError, match="resamples must be"):
        compare_predictions(*dataset(), resamples=1)


def test_a_small_dataset_has_a_thousand_resamples():
    found = compare_predictions(*dataset(n=3, calibration=None))
    assert found.resamples == 1000


def test_a_single_image_has_values_without_intervals():
    first, second, labelled = dataset(n=1, seed=1)
    found = compare_predictions(first, second, labelled)
    assert np.isnan(found.metrics["brier"].difference.low)
    assert np.isnan(found.labels["brier"].adjusted_p_values).all()
