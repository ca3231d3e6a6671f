"""Fit the weights of image features in the temperature of adaptive temperature scaling."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.calibration.fitting.target_smoothing import smooth_targets
from surelabel.calibration.platt import MIN_SLOPE

MAX_WEIGHT = 0.5  # with features in [-3, 3], two features change log T by at most 3


def fit_temperature_weights(
    z: Array, y: Array, known: Flags, features: Array, shrinkage: float
) -> tuple[float, float, Array]:
    """Return the slope, the shift and the weights that minimize the penalized log loss.

        loss = sum of the log loss of (slope · z + shift) / exp(features · weights)
               + shrinkage / 2 · |weights|^2

    Args:
        z: Logits after Platt scaling, ``(n, c)``. The optimization starts with slope 1 and shift 0.
        y: Targets in [0, 1], ``(n, c)``, which are smoothed as in Platt scaling.
        known: True where the target is known, ``(n, c)``.
        features: Standardized features of the images, ``(n, f)``.
        shrinkage: Strength of the penalty of the weights, above 0.

    Returns:
        The slope, the shift and the weights in [-0.5, 0.5], ``(f,)``.
    """
    targets = np.zeros_like(y)
    targets[known] = smooth_targets(y[known])

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, shift, weights = parameters[0], parameters[1], parameters[2:]
        scale = np.exp(-features @ weights)[:, None]
        logits = (slope * z + shift) * scale
        residual = known * (expit(logits) - targets)
        losses = known * (np.logaddexp(0, logits) - targets * logits)
        gradient = [
            np.sum(residual * scale * z),
            np.sum(residual * scale),
            *(shrinkage * weights - features.T @ (residual * logits).sum(axis=1)),
        ]
        value = losses.sum() + shrinkage / 2 * weights @ weights
        return float(value / known.sum()), np.array(gradient) / known.sum()

    bounds = [(MIN_SLOPE, None), (None, None), *[(-MAX_WEIGHT, MAX_WEIGHT)] * features.shape[1]]
    options = {"ftol": 1e-14, "gtol": 1e-9}
    start = np.append([1.0, 0.0], np.zeros(features.shape[1]))
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return float(solution.x[0]), float(solution.x[1]), solution.x[2:]
