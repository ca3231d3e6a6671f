import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    bootstrap,
    brier,
    ece,
    mean_average_precision,
    paired_bootstrap,
    paired_over_seeds,
)


def draw(seed, pictures=80):
    rng = np.random.default_rng(seed)
    p = rng.random((pictures, 3))
    return p, (rng.random((pictures, 3)) < p).astype(float)


def test_the_interval_of_a_mean_is_that_of_its_standard_error():
    p, y = draw(0, 400)
    rows = ((p - y) ** 2).mean(axis=1)
    error = rows.std(ddof=1) / 20
    found = bootstrap(brier, p, y, draws=1000)
    assert found.value == brier(p, y)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_holds_the_truth_about_as_often_as_it_says():
    truth = 1 / 6  # of p (1 - p) for p even on [0, 1]
    found = [bootstrap(brier, *draw(seed), draws=60, level=0.8) for seed in range(100)]
    share = np.mean([f.low < truth < f.high for f in found])
    assert 0.68 < share < 0.92


def test_pictures_are_drawn_and_not_decisions():
    p, y = draw(1)
    wide = bootstrap(brier, np.tile(p, 8), np.tile(y, 8))  # as many labels that say the same
    plain = bootstrap(brier, p, y)
    assert wide.high - wide.low == pytest.approx(plain.high - plain.low, rel=1e-9)


def test_a_binned_error_lies_inside_its_interval():
    p, y = draw(2, 300)
    found = bootstrap(ece, p, y)
    assert found.low < found.value < found.high


def test_is_repeatable_and_moves_with_the_seed():
    p, y = draw(3)
    assert bootstrap(brier, p, y) == bootstrap(brier, p, y)
    assert bootstrap(brier, p, y) != bootstrap(brier, p, y, seed=1)


def test_unknown_targets_have_no_influence():
    p, y = draw(4)
    known = np.random.default_rng(0).random(y.shape) < 0.5
    missing = np.where(known, y, np.nan)
    assert bootstrap(brier, p, y, known) == bootstrap(brier, p, missing)


def test_resamples_that_say_nothing_are_counted():
    p, y = draw(5, 6)
    y[:] = 0
    y[0, 0] = 1
    found = bootstrap(mean_average_precision, p, y)
    share = (5 / 6) ** 6
    assert found.undefined / 200 == pytest.approx(share, abs=0.1)
    assert np.isfinite([found.low, found.high]).all()
    nothing = bootstrap(mean_average_precision, p, np.zeros((6, 3)))
    assert nothing.undefined == 200
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()


def test_one_picture_says_nothing_of_others():
    found = bootstrap(brier, [[0.4]], [[1]])
    assert found.value == pytest.approx(0.36)
    assert np.isnan([found.low, found.high]).all()


def test_a_pair_is_told_apart_where_two_intervals_overlap():
    p, y = draw(6, 300)
    worse = np.clip(p + 0.04, 0, 1)
    alone, other = bootstrap(brier, p, y), bootstrap(brier, worse, y)
    assert alone.high > other.low
    found = paired_bootstrap(brier, worse, p, y)
    assert found.value == pytest.approx(other.value - alone.value)
    assert found.high - found.low < 0.5 * (alone.high - alone.low)


def test_the_same_model_twice_differs_by_nothing():
    p, y = draw(7)
    found = paired_bootstrap(ece, p, p, y)
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_over_seeds_it_is_the_t_interval():
    found = paired_over_seeds([0.02, 0.05, 0.03, 0.04, 0.01])
    reach = 2.7764451 * np.std([2, 5, 3, 4, 1], ddof=1) / 100 / 5**0.5
    assert found.value == pytest.approx(0.03)
    assert found.low == pytest.approx(0.03 - reach)
    assert found.high == pytest.approx(0.03 + reach)
    assert np.isnan([paired_over_seeds([0.1]).low, paired_over_seeds([0.1]).high]).all()


@pytest.mark.parametrize("differences", [[], [0.1, np.nan], [[0.1, 0.2]]])
def test_a_seed_gives_one_finite_number(differences):
    with pytest.raises(InputError, match=r"differences must be one finite number a seed"):
        paired_over_seeds(differences)


def test_what_cannot_be_drawn_is_refused():
    p, y = draw(8)
    with pytest.raises(ConfigError, match=r"draws must be .* at least 2. Got 1"):
        bootstrap(brier, p, y, draws=1)
    with pytest.raises(ConfigError, match=r"level must lie between 0 and 1. Got 95"):
        bootstrap(brier, p, y, level=95)
    with pytest.raises(InputError, match=r"second \(n c\) has shape \(80, 2\)"):
        paired_bootstrap(brier, p, p[:, :2], y)
