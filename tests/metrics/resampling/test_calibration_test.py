from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.resampling import calibration_test
from surelabel.metrics.resampling.calibration_test import calibration_test_p_value


def sampled(seed, n=20, c=5, level=-3.5):
    random = np.random.default_rng(seed)
    z = random.normal(level, 1, size=(n, c))
    return z, (random.random((n, c)) < expit(z)).astype(float)


def test_calibrated_probabilities_with_few_positives_are_rarely_rejected():
    p_values = [calibration_test_p_value(*sampled(seed), resamples=200) for seed in range(200)]
    assert np.mean(np.array(p_values) < 0.05) < 0.09
    assert np.mean(np.array(p_values) < 0.5) < 0.62


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 0.0), (1.0, 1.5), (2.0, 1.0)])
def test_a_wrong_scale_or_shift_is_rejected(scale, shift):
    z, y = sampled(0, n=100, c=20, level=-1)
    assert calibration_test_p_value(scale * z + shift, y) < 0.01


def test_the_p_value_does_not_depend_on_the_size_of_blocks(monkeypatch):
    z, y = sampled(1)
    whole = calibration_test_p_value(z, y, resamples=101)
    monkeypatch.setattr(calibration_test, "MAX_SAMPLED_TARGETS", 1000)
    assert calibration_test_p_value(z, y, resamples=101) == whole


def exact_p_value(z, y):
    """Return the p-value over all possible targets, by a plain loop."""
    p = expit(z)
    terms = np.stack([z, np.ones(len(z))])
    information = sum(p[i] * (1 - p[i]) * np.outer(terms[:, i], terms[:, i]) for i in range(len(z)))

    def statistic(targets):
        score = terms @ (targets - p)
        return score @ np.linalg.solve(information, score)

    share = 0.0
    for sampled_targets in map(np.array, product([0, 1], repeat=len(z))):
        if statistic(sampled_targets) >= statistic(y) - 1e-9:
            share += np.prod(np.where(sampled_targets, p, 1 - p))
    return share


@pytest.mark.parametrize("y", [[0, 0, 0, 0, 0, 1], [0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1]])
def test_the_p_value_is_that_of_all_possible_targets(y):
    z, y = np.array([-3.0, -2.5, -1.0, 0.0, 0.5, 3.0]), np.array(y)
    p_value = calibration_test_p_value(z[:, None], y[:, None], resamples=20_000)
    assert p_value == pytest.approx(exact_p_value(z, y), abs=0.015)


def test_the_given_targets_and_equal_statistics_count():
    assert calibration_test_p_value([[0.0]], [[1]]) == 1
    z, y = np.zeros((200, 1)), np.ones((200, 1))
    assert calibration_test_p_value(z, y, resamples=99) == 0.01


def test_probabilities_close_to_zero_are_never_sampled_as_positive():
    z = np.concatenate([np.linspace(-1, 1, 50), np.full(1_000_000, -40.0)])[:, None]
    y = (np.arange(len(z)) < 50)[:, None]
    assert calibration_test_p_value(z, y, resamples=39) == 1 / 40


def test_unknown_targets_have_no_effect():
    z, y = sampled(2)
    expected = calibration_test_p_value(z[:15], y[:15])
    known = np.arange(20)[:, None] < 15 * np.ones((1, 5))
    assert calibration_test_p_value(z, y, known) == expected


def test_equal_log_odds_are_tested_by_their_shift():
    y = np.zeros((50, 1))
    assert calibration_test_p_value(np.zeros((50, 1)), y) < 0.01
    y[::2] = 1
    assert calibration_test_p_value(np.zeros((50, 1)), y) > 0.5


def test_invalid_input_is_refused():
    with pytest.raises(InputError, match="needs finite log-odds and at least one known target"):
        calibration_test_p_value([[1.0]], [[np.nan]])
    with pytest.raises(InputError, match="needs finite log-odds"):
        calibration_test_p_value([[np.inf]], [[1]])
    with pytest.raises(ConfigError, match="resamples must be"):
        calibration_test_p_value([[1.0]], [[1]], resamples=0)
