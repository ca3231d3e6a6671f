import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    bootstrap_interval,
    brier,
    ece,
    mean_average_precision,
    paired_bootstrap_interval,
    paired_t_interval,
)


def draw(seed, images=80):
    rng = np.random.default_rng(seed)
    p = rng.random((images, 3))
    return p, (rng.random((images, 3)) < p).astype(float)


def test_the_interval_of_a_mean_is_that_of_its_standard_error():
    p, y = draw(0, 400)
    rows = ((p - y) ** 2).mean(axis=1)
    error = rows.std(ddof=1) / 20
    found = bootstrap_interval(brier, p, y, resamples=1000)
    assert found.value == brier(p, y)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_the_coverage_is_about_the_confidence_level():
    truth = 1 / 6  # of p (1 - p) for p even on [0, 1]
    found = [bootstrap_interval(brier, *draw(seed), resamples=60, level=0.8) for seed in range(100)]
    share = np.mean([f.low < truth < f.high for f in found])
    assert 0.68 < share < 0.92


def test_images_are_resampled_instead_of_labels():
    p, y = draw(1)
    wide = bootstrap_interval(
        brier, np.tile(p, 8), np.tile(y, 8)
    )  # as many labels that say the same
    plain = bootstrap_interval(brier, p, y)
    assert wide.high - wide.low == pytest.approx(plain.high - plain.low, rel=1e-9)


def test_a_binned_error_lies_inside_its_interval():
    p, y = draw(2, 300)
    found = bootstrap_interval(ece, p, y)
    assert found.low < found.value < found.high


def test_is_repeatable_and_moves_with_the_seed():
    p, y = draw(3)
    assert bootstrap_interval(brier, p, y) == bootstrap_interval(brier, p, y)
    assert bootstrap_interval(brier, p, y) != bootstrap_interval(brier, p, y, seed=1)


def test_unknown_targets_have_no_influence():
    p, y = draw(4)
    known = np.random.default_rng(0).random(y.shape) < 0.5
    missing = np.where(known, y, np.nan)
    assert bootstrap_interval(brier, p, y, known) == bootstrap_interval(brier, p, missing)


def test_undefined_resamples_are_counted():
    p, y = draw(5, 6)
    y[:] = 0
    y[0, 0] = 1
    found = bootstrap_interval(mean_average_precision, p, y)
    share = (5 / 6) ** 6
    assert found.undefined / 200 == pytest.approx(share, abs=0.1)
    assert np.isfinite([found.low, found.high]).all()
    nothing = bootstrap_interval(mean_average_precision, p, np.zeros((6, 3)))
    assert nothing.undefined == 200
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()


def test_one_image_has_no_interval():
    found = bootstrap_interval(brier, [[0.4]], [[1]])
    assert found.value == pytest.approx(0.36)
    assert np.isnan([found.low, found.high]).all()


def test_the_paired_interval_is_narrower_than_two_intervals():
    p, y = draw(6, 300)
    worse = np.clip(p + 0.04, 0, 1)
    alone, other = bootstrap_interval(brier, p, y), bootstrap_interval(brier, worse, y)
    assert alone.high > other.low
    found = paired_bootstrap_interval(brier, worse, p, y)
    assert found.value == pytest.approx(other.value - alone.value)
    assert found.high - found.low < 0.5 * (alone.high - alone.low)


def test_the_same_model_twice_differs_by_nothing():
    p, y = draw(7)
    found = paired_bootstrap_interval(ece, p, p, y)
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_over_seeds_it_is_the_t_interval():
    found = paired_t_interval([0.02, 0.05, 0.03, 0.04, 0.01])
    reach = 2.7764451 * np.std([2, 5, 3, 4, 1], ddof=1) / 100 / 5**0.5
    assert found.value == pytest.approx(0.03)
    assert found.low == pytest.approx(0.03 - reach)
    assert found.high == pytest.approx(0.03 + reach)
    assert np.isnan([paired_t_interval([0.1]).low, paired_t_interval([0.1]).high]).all()


@pytest.mark.parametrize("differences", [[], [0.1, np.nan], [[0.1, 0.2]]])
def test_a_seed_gives_one_finite_number(differences):
    with pytest.raises(InputError, match=r"differences must contain one finite number per seed"):
        paired_t_interval(differences)


def test_settings_out_of_range_are_refused():
    p, y = draw(8)
    with pytest.raises(ConfigError, match=r"resamples must be .* at least 2; got 1"):
        bootstrap_interval(brier, p, y, resamples=1)
    with pytest.raises(ConfigError, match=r"level must be between 0 and 1; got 95"):
        bootstrap_interval(brier, p, y, level=95)
    with pytest.raises(InputError, match=r"second \(n c\) has shape \(80, 2\)"):
        paired_bootstrap_interval(brier, p, p[:, :2], y)
