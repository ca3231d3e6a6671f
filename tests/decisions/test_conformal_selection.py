import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from surelabel.decisions.conformal_selection import (
    benjamini_hochberg,
    benjamini_yekutieli,
    conformal_p_values,
)
from surelabel.errors import ConfigError, InputError

P_VALUES = st.lists(st.integers(0, 40).map(lambda k: k / 40), min_size=1, max_size=30)
LEVEL = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.5, 0.9])


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 8), max_size=12),
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=12),
)
def test_p_values_are_counts_of_false_claims_at_or_above(new, calibration):
    confidences = [c for c, _ in calibration]
    is_false = [f for _, f in calibration]
    ours = conformal_p_values(new, confidences, is_false)
    for value, p in zip(new, ours, strict=True):
        n_above = sum(f and c >= value for c, f in calibration)
        assert p == pytest.approx((1 + n_above) / (len(calibration) + 1))


@given(P_VALUES, LEVEL)
def test_rejections_are_those_of_scipy(p_values, level):
    adjusted = false_discovery_control(p_values, method="bh")
    expected = adjusted <= level + 1e-9
    np.testing.assert_array_equal(benjamini_hochberg(p_values, level=level), expected)


@given(P_VALUES, LEVEL)
def test_rejections_under_any_dependence_are_those_of_scipy(p_values, level):
    adjusted = false_discovery_control(p_values, method="by")
    expected = adjusted <= level + 1e-9
    np.testing.assert_array_equal(benjamini_yekutieli(p_values, level=level), expected)


def test_equal_p_values_are_rejected_together():
    assert benjamini_hochberg([0.05, 0.05, 0.05], level=0.05).all()
    assert not benjamini_hochberg([0.051] * 3, level=0.05).any()


def test_without_an_image_nothing_is_accepted():
    assert conformal_p_values([], [], []).shape == (0,)
    assert conformal_p_values([1.0], [], []).tolist() == [1.0]
    assert benjamini_hochberg([], level=0.1).shape == (0,)
    assert benjamini_yekutieli([], level=0.1).shape == (0,)


@pytest.mark.parametrize("is_informative", [True, False])
@pytest.mark.parametrize("level", [0.1, 0.3])
def test_the_mean_share_of_false_claims_is_below_the_level(level, is_informative):
    """About a third of the claims is false; the margin is five standard errors."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(600):
        confidence = rng.normal(size=140)
        offset = confidence if is_informative else np.zeros(140)
        is_false = rng.random(140) > 1 / (1 + np.exp(-3 * offset - 0.6))
        p_values = conformal_p_values(confidence[40:], confidence[:40], is_false[:40])
        accepted = benjamini_hochberg(p_values, level=level)
        shares.append((accepted & is_false[40:]).sum() / max(accepted.sum(), 1))
    assert np.mean(shares) <= level + 5 * np.std(shares) / np.sqrt(len(shares))
    assert not is_informative or np.mean(shares) >= level / 3


def test_the_denominator_counts_all_calibration_images_not_only_false_claims():
    confidences, calibration = np.ones(4), np.zeros(9)
    assert conformal_p_values(confidences, calibration, np.zeros(9, bool))[0] == 0.1
    assert conformal_p_values(-confidences, calibration, np.arange(9) < 3)[0] == 0.4


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, float("nan")])
@pytest.mark.parametrize("rule", [benjamini_hochberg, benjamini_yekutieli])
def test_a_level_outside_is_refused(rule, level):
    with pytest.raises(ConfigError, match="level must be above 0 and below 1"):
        rule([0.1], level=level)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_p_value_outside_is_refused(value):
    with pytest.raises(InputError, match=r"p-values must be in \[0, 1\]"):
        benjamini_hochberg([0.5, value], level=0.1)


def test_a_confidence_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="finite"):
        conformal_p_values([float("nan")], [1.0], [True])
    with pytest.raises(InputError, match="must have axes"):
        conformal_p_values([1.0], [1.0, 2.0], [True])
