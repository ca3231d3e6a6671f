import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from surelabel.calibration.fitting.isotonic_curve import IsotonicCurve, fit_isotonic_curve


@given(
    x=hnp.arrays(float, 30, elements=st.integers(-6, 6).map(float)),
    y=hnp.arrays(float, 30, elements=st.sampled_from([0.1, 0.5, 0.8])),
)
@settings(max_examples=100, deadline=None)
def test_with_hardly_a_pseudo_count_it_is_scikit_learns(x, y):
    oracle = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    inside = np.append(x, [-9.0, 9.0])
    np.testing.assert_allclose(
        expit(fit_isotonic_curve(x, y, 1e-9)(inside)), oracle.predict(inside), atol=1e-7
    )


@given(
    x=hnp.arrays(float, 40, elements=st.integers(-20, 20).map(float)),
    y=hnp.arrays(bool, 40),
    pseudo_count=st.sampled_from([0.01, 1.0, 100.0]),
)
@settings(max_examples=100, deadline=None)
def test_rises_whatever_the_steps_weigh(x, y, pseudo_count):
    found = fit_isotonic_curve(x, y.astype(float), pseudo_count)
    assert found.is_monotonic
    assert np.isfinite(found.levels).all()
    assert len(found.knots) == len(found.levels) <= 40


def test_a_step_counts_as_by_hand():
    found = fit_isotonic_curve(np.array([0.0, 1, 2, 3, 4]), np.array([0.0, 1, 0, 1, 1]), 2)
    np.testing.assert_array_equal(found.knots, [0, 1, 2, 3, 4])
    shares = [1 / 3, 2 / 4, 2 / 4, 3 / 4, 3 / 4]  # (0 + 1) / (1 + 2), (1 + 1) / (2 + 2), …
    np.testing.assert_allclose(expit(found.levels), shares)


def test_one_score_is_a_flat_curve():
    found = fit_isotonic_curve(np.array([2.0, 2.0]), np.array([0.0, 1.0]), 1)
    np.testing.assert_allclose(found(np.array([-9.0, 2.0, 9.0])), 0, atol=1e-12)


@pytest.mark.parametrize(("knots", "levels"), [([0, 0], [1, 2]), ([0, 1], [2, 1])])
def test_a_curve_that_falls_or_jumps_does_not_rise(knots, levels):
    assert not IsotonicCurve(np.array(knots), np.array(levels)).is_monotonic
