import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.resampling.studentized_bootstrap import studentized_bootstrap_interval


def test_the_value_is_the_mean_over_targets_not_over_images():
    interval = studentized_bootstrap_interval([6.0, 1.0], [3, 1])
    assert interval.value == 7 / 4


def test_the_interval_of_few_skewed_images_covers_the_mean():
    covered = []
    for seed in range(300):
        values = np.random.default_rng(seed).exponential(size=20)
        interval = studentized_bootstrap_interval(values, np.ones(20), resamples=300, seed=seed)
        covered.append(interval.low <= 1 <= interval.high)
    assert np.mean(covered) > 0.91


def test_the_interval_of_normal_values_is_close_to_the_t_interval():
    values = np.random.default_rng(0).normal(size=40)
    interval = studentized_bootstrap_interval(values, np.ones(40), resamples=5000)
    half = 2.0227 * values.std(ddof=1) / np.sqrt(40)  # t quantile of 39 degrees of freedom
    assert interval.low == pytest.approx(values.mean() - half, abs=0.06)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.06)


def test_equal_images_have_an_interval_without_width():
    interval = studentized_bootstrap_interval([2.0] * 30, [1.0] * 30)
    assert (interval.low, interval.high) == (2.0, 2.0)


def by_hand(sums, counts, resamples, seed):
    """Return the ends of the 95 % interval by a plain loop over the resamples."""

    def mean_and_error(rows):
        n, n_targets = len(rows), sum(counts[row] for row in rows)
        mean = sum(sums[row] for row in rows) / n_targets
        squares = sum((sums[row] - mean * counts[row]) ** 2 for row in rows)
        return mean, (n / (n - 1) * squares) ** 0.5 / n_targets

    n = len(sums)
    mean, error = mean_and_error(range(n))
    resampled = map(
        mean_and_error, np.random.default_rng(seed).integers(n, size=(resamples, n)).tolist()
    )
    t = [(other - mean) / own_error for other, own_error in resampled]
    return mean - error * np.quantile(t, 0.975), mean - error * np.quantile(t, 0.025)


def test_images_with_different_numbers_of_targets_have_the_interval_of_a_plain_loop():
    random = np.random.default_rng(4)
    counts = random.integers(1, 30, size=15)
    sums = counts * random.normal(size=15)
    interval = studentized_bootstrap_interval(sums, counts, resamples=200, seed=2)
    assert (interval.low, interval.high) == pytest.approx(by_hand(sums, counts, 200, 2))


def test_a_single_image_has_no_interval():
    interval = studentized_bootstrap_interval([2.0], [4])
    assert interval.value == 0.5
    assert np.isnan([interval.low, interval.high]).all()


def test_equal_seeds_give_equal_intervals():
    values, counts = np.arange(25.0), np.ones(25)
    first, second = (studentized_bootstrap_interval(values, counts, seed=3) for _ in range(2))
    assert first == second
    assert studentized_bootstrap_interval(values, counts, seed=4) != first


@pytest.mark.parametrize(
    ("sums", "counts"), [([np.nan], [1]), ([1.0], [0]), ([], []), ([np.inf, 1], [1, 1])]
)
def test_images_without_targets_are_refused(sums, counts):
    with pytest.raises(InputError, match="sums must be finite, and counts at least 1"):
        studentized_bootstrap_interval(sums, counts)


def test_invalid_settings_are_refused():
    with pytest.raises(ConfigError, match="level must be between 0 and 1"):
        studentized_bootstrap_interval([1.0, 2.0], [1, 1], level=1)
    with pytest.raises(ConfigError, match="resamples must be"):
        studentized_bootstrap_interval([1.0, 2.0], [1, 1], resamples=1)
