import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit

from surelabel.calibration.fitting.label_slopes import (
    fit_label_slopes,
    label_line_derivatives,
    rows_of_labels,
)


@pytest.fixture
def labels():
    """Logits, targets and weights of 20 labels, more than one block, and the penalty."""
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(20, 30)) - 1
    y = (rng.random(z.shape) < expit(z + rng.normal(size=(20, 1)))).astype(float)
    weight = (rng.random(z.shape) < 0.8).astype(float)
    return z, y, weight, np.array([1.2, -0.3]), np.array([[4.0, -1.0], [-1.0, 2.0]])


def penalized(line, z, y, weight, mean, precision):
    logits = line[0] * z + line[1]
    offset = line - mean
    return weight @ (np.logaddexp(0, logits) - y * logits) + offset @ precision @ offset / 2


def test_no_other_line_has_less_penalized_loss(labels):
    z, y, weight, mean, precision = labels
    start = np.tile([1.0, 0.0], (20, 1))
    lines = fit_label_slopes(z, y, weight, start=start, mean=mean, precision=precision)
    for label in range(20):
        arguments = (z[label], y[label], weight[label], mean, precision)
        best = minimize(penalized, [1.0, 0.0], args=arguments, tol=1e-10).x
        np.testing.assert_allclose(lines[label], best, atol=1e-4)
    np.testing.assert_array_equal(start, np.tile([1.0, 0.0], (20, 1)))


def test_derivatives_are_those_of_the_log_loss(labels):
    z, y, weight, _, _ = labels
    lines = np.random.default_rng(1).normal(size=(20, 2))
    none = np.zeros(2), np.zeros((2, 2))
    _, hessian = label_line_derivatives(z, y, weight, lines)
    for label in (0, 7):
        data = z[label], y[label], weight[label]

        def gradient_at(line, data=data):
            return label_line_derivatives(*(a[None] for a in data), line[None])[0][0]

        def loss(line, data=data):
            return penalized(line, *data, *none)

        assert check_grad(loss, gradient_at, lines[label]) < 1e-5
        for k in range(2):
            step = 1e-5 * np.eye(2)[k]
            change = gradient_at(lines[label] + step) - gradient_at(lines[label] - step)
            np.testing.assert_allclose(hessian[label, k], change / 2e-5, rtol=1e-5)


def test_a_slope_stays_positive_if_the_order_is_reversed():
    z = np.linspace(-3, 3, 40)[None]
    lines = fit_label_slopes(
        z,
        (z < 0).astype(float),
        np.ones_like(z),
        start=np.array([[1.0, 0.0]]),
        mean=np.array([1.0, 0.0]),
        precision=0.01 * np.eye(2),
    )
    assert lines[0, 0] == 0.001


def test_a_mask_of_known_targets_is_a_weight(labels):
    z, y, weight, mean, precision = labels
    prior = {"start": np.tile([1.0, 0.0], (20, 1)), "mean": mean, "precision": precision}
    np.testing.assert_array_equal(
        fit_label_slopes(z, y, weight.astype(bool), **prior),
        fit_label_slopes(z, y, weight, **prior),
    )


def test_columns_of_some_labels_become_rows():
    array = np.arange(2_400_000).reshape(-1, 3)  # several blocks
    rows = rows_of_labels(array, np.array([True, False, True]))
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, [array[:, 0], array[:, 2]])
