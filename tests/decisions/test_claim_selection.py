import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from surelabel.decisions import benjamini_hochberg, conformal_p_values
from surelabel.decisions.claim_selection import (
    accept_claims,
    fewest_calibration_images,
    most_false_claims,
)
from surelabel.errors import ConfigError, InputError


def largest_share_by_hand(n, m, k):
    """The mean share of false new claims if at most k are found, for the worst number of them."""
    return max(
        sum(
            hypergeom.pmf(j, n + m, total, n) * (total - j) / m
            for j in range(min(k, total, n) + 1)
            if total - j <= m
        )
        for total in range(n + m + 1)
    )


@settings(max_examples=25)
@given(st.integers(1, 25), st.integers(1, 60), st.sampled_from([0.03, 0.05, 0.1, 0.2, 0.5]))
def test_one_test_allows_as_many_false_claims_as_keep_the_mean_share(n, m, level):
    k = most_false_claims(n, m, level)
    assert k == -1 or largest_share_by_hand(n, m, k) <= level + 1e-9
    assert k == n or largest_share_by_hand(n, m, k + 1) > level - 1e-9


def test_many_images_are_no_trouble():
    assert most_false_claims(20, 10**7, 0.05) == most_false_claims(20, 10**5, 0.05) == 1
    assert most_false_claims(5, 0, 0.5) == -1


@pytest.mark.parametrize("n_new", [1, 3, 200, 10**6])
@pytest.mark.parametrize("level", [0.02, 0.05, 0.1, 0.2, 1 / 3, 0.5, 0.9])
def test_the_fewest_images_can_accept_and_one_less_cannot(level, n_new):
    n = fewest_calibration_images(level, n_new)
    assert most_false_claims(n, n_new, level) >= 0
    assert n == 1 or most_false_claims(n - 1, n_new, level) == -1
    if n_new == 1:  # then the bound is that of a conformal p-value
        assert n == max(int(np.ceil(1 / level - 1e-9)) - 1, 1)


def test_with_many_likely_claims_the_rule_is_that_of_benjamini_and_hochberg():
    rng = np.random.default_rng(0)
    confidences, is_false = rng.random(700), rng.random(700) < 0.3
    new, known = confidences[:300], confidences[300:]
    p_values = conformal_p_values(new, known, is_false[300:])
    for level in (0.05, 0.1, 0.4):
        ours = accept_claims(new, known, is_false[300:], level=level)
        np.testing.assert_array_equal(ours, benjamini_hochberg(p_values, level=level))


def test_with_few_likely_claims_all_or_none_above_one_threshold_are_accepted():
    known, new = np.full(10, 0.97), np.array([0.99, 0.98, 0.97, 0.2])
    none_false = np.zeros(10, bool)
    accepted = accept_claims(new, known, none_false, level=0.1)
    assert accepted.tolist() == [True, True, True, False]
    for n_false in range(1, 10):
        is_false = np.arange(10) < n_false
        expected = n_false <= most_false_claims(10, 3, 0.1)
        assert accept_claims(new, known, is_false, level=0.1)[:3].all() == expected


def test_targets_decide_neither_the_rule_nor_the_threshold():
    """Whatever the targets are, a one test accepts the same images or none."""
    rng = np.random.default_rng(0)
    known, new = rng.random(30), rng.random(200)
    results = {
        accept_claims(new, known, rng.random(30) < share, level=0.1).tobytes()
        for share in (0, 0, 0.02, 0.1, 0.3, 1)
    }
    assert len(results) == 2


@pytest.mark.parametrize("shift", [-2.0, 0.0, 2.0])
@pytest.mark.parametrize("n", [12, 30, 60])
@pytest.mark.parametrize("level", [0.1, 0.2])
def test_the_mean_share_of_false_claims_is_below_the_level(level, n, shift):
    """A shift makes the probabilities wrong; the margin is five standard errors."""
    rng = np.random.default_rng(0)
    shares, n_accepted = [], 0
    for _ in range(300):
        logits = rng.normal(1.5, 2, n + 150)
        is_false = rng.random(n + 150) > 1 / (1 + np.exp(-logits))
        confidences = 1 / (1 + np.exp(-logits - shift))
        accepted = accept_claims(confidences[n:], confidences[:n], is_false[:n], level=level)
        shares.append((accepted & is_false[n:]).sum() / max(accepted.sum(), 1))
        n_accepted += accepted.sum()
    assert np.mean(shares) <= level + 5 * np.std(shares) / np.sqrt(len(shares))
    assert n_accepted > 0


def test_without_an_image_nothing_is_accepted():
    assert accept_claims([], [0.5], [False], level=0.1).shape == (0,)
    assert accept_claims([0.9, 0.8], [], [], level=0.1).tolist() == [False, False]


def test_confidences_and_levels_outside_are_refused():
    with pytest.raises(InputError, match=r"Confidences must be in \[0, 1\]"):
        accept_claims([3.0], [0.5], [False])
    with pytest.raises(ConfigError, match="level must be above 0 and below 1"):
        accept_claims([0.5], [0.5], [False], level=0.0)
    with pytest.raises(ConfigError, match="level must be above 0 and below 1"):
        fewest_calibration_images(1.0)
