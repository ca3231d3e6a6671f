import numpy as np
import pytest
from scipy.special import expit

from surelabel.decisions import compute_risk_coverage, risk_coverage_of_errors
from surelabel.errors import InputError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(400, 5))
    return logits, (rng.random(logits.shape) < expit(logits)).astype(float)


def test_equals_sorting_by_hand(data):
    logits, targets = data
    known = np.random.default_rng(1).random(logits.shape) < 0.7
    images = []
    for z, y, k in zip(logits, targets, known, strict=True):
        if k.any():
            p = [expit(v) for v in z[k]]
            doubt = np.mean([-q * np.log(q) - (1 - q) * np.log(1 - q) for q in p])
            wrong = np.mean([(q >= 0.5) != t for q, t in zip(p, y[k], strict=True)])
            images.append((doubt, wrong))
    errors = [wrong for _, wrong in sorted(images)]
    found = compute_risk_coverage(logits, targets, known)
    means = [np.mean(errors[: i + 1]) for i in range(len(errors))]
    np.testing.assert_allclose(found.risk, means)
    np.testing.assert_allclose(found.coverage, np.arange(1, len(errors) + 1) / len(errors))
    assert found.area == pytest.approx(np.mean(means))


def test_sure_images_are_less_often_wrong_and_no_order_beats_the_best(data):
    found = compute_risk_coverage(*data)
    assert found.optimal_area < found.area < 0.8 * found.risk[-1]


def test_equally_sure_images_count_alike_in_any_order(data):
    logits, targets = np.zeros_like(data[0]), data[1]
    found = compute_risk_coverage(logits, targets)
    np.testing.assert_allclose(found.risk, found.risk[-1])
    turned = compute_risk_coverage(logits, targets[::-1])
    np.testing.assert_allclose(turned.risk, found.risk)


def test_images_of_which_nothing_is_known_are_left_out(data):
    logits, targets = data
    with_more = np.vstack([targets, np.full((7, 5), np.nan)])
    found = compute_risk_coverage(np.vstack([logits, logits[:7]]), with_more)
    np.testing.assert_array_equal(found.risk, compute_risk_coverage(logits, targets).risk)


def test_certainty_is_no_trouble():
    found = compute_risk_coverage([[1e4, -1e4], [0.0, 0.0]], [[1, 0], [1, 0]])
    assert found.risk.tolist() == [0, 0.25]


def test_one_image_is_a_curve_of_one_point():
    found = compute_risk_coverage([[2.0]], [[0.0]])
    assert (found.coverage.tolist(), found.risk.tolist(), found.area) == ([1], [1], 1)


def test_nothing_known_is_refused():
    with pytest.raises(InputError, match="without a known target"):
        compute_risk_coverage([[1.0]], [[np.nan]])


def test_errors_of_decisions_give_the_curve_of_the_same_images(data):
    logits, targets = data
    p = expit(logits)
    doubt = -(p * np.log(p) + (1 - p) * np.log(1 - p)).mean(axis=1)
    wrong = np.abs((p >= 0.5) - targets).mean(axis=1)
    found = risk_coverage_of_errors(doubt, wrong)
    expected = compute_risk_coverage(logits, targets)
    np.testing.assert_allclose(found.risk, expected.risk)
    assert found.optimal_area == pytest.approx(expected.optimal_area)


def test_the_risk_at_a_coverage_keeps_at_least_that_fraction():
    curve = risk_coverage_of_errors([1, 2, 3, 4, 5], [0, 0, 1, 1, 1])
    assert [curve.risk_at(c) for c in (0.2, 0.4, 0.41, 0.8, 1)] == [0, 0, 1 / 3, 1 / 2, 3 / 5]
    with pytest.raises(InputError, match=r"in \(0, 1\]; got 0"):
        curve.risk_at(0)


@pytest.mark.parametrize(("uncertainty", "error"), [([], []), ([np.nan], [1]), ([1], [np.nan])])
def test_a_curve_needs_finite_values(uncertainty, error):
    with pytest.raises(InputError, match="at least one decision, and finite uncertainties"):
        risk_coverage_of_errors(uncertainty, error)
