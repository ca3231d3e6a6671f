import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration.adaptive_temperature.temperature_weights import fit_temperature_weights


def decisions(weights, n=3000):
    """Return logits, targets and features; the features with the weights are log T."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, len(weights))).clip(-2, 2)
    truth = 1.5 * rng.normal(size=(n, 4)) - 1
    targets = (rng.random(truth.shape) < expit(truth)).astype(float)
    z = truth * np.exp(features @ weights)[:, None]
    return z, targets, np.ones(z.shape, dtype=bool), features


def test_the_weights_that_made_the_data_are_recovered():
    slope, shift, weights = fit_temperature_weights(*decisions([0.3, -0.2]), shrinkage=1.0)
    assert slope == pytest.approx(1, abs=0.05)
    assert shift == pytest.approx(0, abs=0.05)
    np.testing.assert_allclose(weights, [0.3, -0.2], atol=0.04)


def test_no_parameters_nearby_have_a_lower_penalized_loss():
    z, y, known, features = decisions([0.3, -0.2], n=300)
    known[::3] = False
    slope, shift, weights = fit_temperature_weights(z, y, known, features, shrinkage=20.0)
    positives, count = y[known].sum(), known.sum()
    high, low = (positives + 1) / (positives + 2), 1 / (count - positives + 2)

    def loss(parameters):
        total = 10 * (parameters[2] ** 2 + parameters[3] ** 2)
        for i in range(300):
            temperature = np.exp(features[i] @ parameters[2:])
            for c in range(4):
                p = expit((parameters[0] * z[i, c] + parameters[1]) / temperature)
                t = high if y[i, c] else low
                total -= known[i, c] * (t * np.log(p) + (1 - t) * np.log1p(-p))
        return total

    best = np.array([slope, shift, *weights])
    for step in 0.02 * np.vstack([np.eye(4), -np.eye(4)]):
        assert loss(best + step) > loss(best)


def test_the_weights_are_bounded():
    _, _, weights = fit_temperature_weights(*decisions([0.9, 0.0]), shrinkage=1e-3)
    assert weights[0] == 0.5
