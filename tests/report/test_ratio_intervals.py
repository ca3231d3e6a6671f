import numpy as np
from scipy import stats

from surelabel.metrics import bootstrap_interval
from surelabel.report import ratio_intervals
from surelabel.report.ratio_intervals import RESAMPLES, ratio_of_sums_intervals


def pooled_precision(counts, _targets, _known):
    return counts[:, 0].sum() / counts[:, 1].sum()


def test_the_interval_is_that_of_resampled_images():
    random = np.random.default_rng(3)
    predicted = random.integers(1, 5, (40, 2)).astype(float)
    right = np.minimum(predicted, random.integers(0, 5, (40, 2)))
    intervals = ratio_of_sums_intervals(right, predicted)
    for column, interval in enumerate(intervals):
        counts = np.stack([right[:, column], predicted[:, column]], axis=1)
        expected = bootstrap_interval(
            pooled_precision, counts, np.zeros((40, 2)), resamples=RESAMPLES, seed=0
        )
        assert np.allclose(
            [interval.value, interval.low, interval.high],
            [expected.value, expected.low, expected.high],
        )


def test_a_ratio_without_a_denominator_is_undefined():
    (interval,) = ratio_of_sums_intervals(np.zeros((5, 1)), np.zeros((5, 1)))
    assert np.isnan([interval.value, interval.low, interval.high]).all()


def test_one_image_has_a_ratio_and_no_interval():
    (interval,) = ratio_of_sums_intervals(np.array([[1.0]]), np.array([[4.0]]))
    assert interval.value == 0.25
    assert np.isnan(interval.low)


def test_the_interval_of_a_fraction_of_one_or_zero_is_that_of_clopper_and_pearson():
    ones = np.ones((30, 1))
    ones[10:] = 0  # 10 images with a denominator
    (one,), (zero,) = (ratio_of_sums_intervals(ones * value, ones) for value in (1, 0))
    expected = stats.binomtest(10, 10).proportion_ci(method="exact")
    assert np.allclose([one.low, one.high], [expected.low, expected.high])
    assert np.allclose([zero.low, zero.high], [1 - expected.high, 1 - expected.low])


def test_the_interval_of_a_fraction_has_no_values_above_one():
    right, predicted = np.ones((30, 1)), np.ones((30, 1))
    right[0] = 0
    (interval,) = ratio_of_sums_intervals(right, predicted)
    assert interval.low < 29 / 30 < interval.high <= 1


def test_cached_resamples_do_not_change_the_intervals(monkeypatch):
    random = np.random.default_rng(4)
    values = [(random.integers(0, 3, (n, 2)), np.full((n, 2), 2)) for n in (30, 31, 30)]
    cached = [ratio_of_sums_intervals(*each) for each in values]
    monkeypatch.setattr(ratio_intervals, "CACHED_IMAGES", 0)
    assert cached == [ratio_of_sums_intervals(*each) for each in values]
