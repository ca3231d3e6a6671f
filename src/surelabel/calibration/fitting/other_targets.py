"""Compute the log-odds of each target, given the other targets of the same image."""

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.calibration.fitting.cross_fitting import assign_folds
from surelabel.calibration.fitting.input_validation import validate_calibration_data

RIDGE_WEIGHTS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # from strong to weak
MAX_LOGIT = 15.0  # limit of the input; other targets cannot change more extreme log-odds
MAX_STEPS = 60  # optimizer steps of each fit


def logits_given_other_targets(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
) -> Array:
    """Return log-odds of each target, given the scores and all other targets of its image.

        logit'_c = logit_c + b_c + Σ_{k != c} W_kc · (y_k - sigmoid(logit_k))

    Here logit_c is the input, clipped to [-15, 15]. The term y_k - sigmoid(logit_k) is the residual
    of another target, or 0 if that target is unknown. The parameters b and W minimize the log loss
    plus ridge · (|W|² + |b|²) / 2 on the images of other folds. Therefore the log-odds of a target
    depend on this target only through the selected ridge weight. Weights from 1,000 down to 0.1 are
    tried until the out-of-fold log loss no longer decreases. If the first weight does not reduce
    the log loss, or if there is only one label, the input is returned.

    Args:
        logits: Finite out-of-fold log-odds of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known.
        folds: Number of folds, >= 2 and at most the number of images with a known target.
        seed: Seed of the random order in which images are assigned to folds.

    Returns:
        Log-odds in [-40, 40], ``(n, c)``.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if a known target is outside
            [0, 1], or if the known targets contain no positive or no negative target. If there are
            fewer images with a known target than folds.
        ConfigError: If ``folds`` is not a whole number of at least 2.

    Source:
        None; ours. Stacking after Wolpert, Stacked Generalization, Neural Networks 1992, with a
        ridge penalty. The page docs/label-errors.md has the measured improvement.

    Example:
        >>> y = np.array([[1, 1], [0, 0]] * 50)
        >>> logits_given_other_targets(np.zeros((100, 2)), y)[:2].round() > 0
        array([[ True,  True],
               [False, False]])
    """
    x, y, mask = validate_calibration_data(logits, targets, known)
    n_labels = x.shape[1]
    fold = assign_folds(mask, folds, np.random.default_rng(seed))
    offset = x.clip(-MAX_LOGIT, MAX_LOGIT)
    residuals = np.where(mask, y - expit(offset), 0.0)
    lowest, result = _sum_of_log_losses(offset, y, mask), x
    if n_labels == 1:
        return x.clip(-LOGIT_LIMIT, LOGIT_LIMIT)
    folds = int(folds)
    parameters = [np.zeros((n_labels + 1, n_labels)) for _ in range(folds)]
    for ridge in RIDGE_WEIGHTS:
        stacked = np.empty_like(x)
        for k in range(folds):
            rows = fold != k
            parameters[k] = _fit_weights(
                offset[rows], residuals[rows], y[rows], mask[rows], ridge, parameters[k]
            )
            intercept, weights = parameters[k][0], parameters[k][1:]
            stacked[~rows] = offset[~rows] + intercept + residuals[~rows] @ weights
        log_loss = _sum_of_log_losses(stacked, y, mask)
        if log_loss >= lowest:
            break
        lowest, result = log_loss, stacked
    return result.clip(-LOGIT_LIMIT, LOGIT_LIMIT)


def _fit_weights(
    offset: Array, residuals: Array, targets: Array, known: Flags, ridge: float, start: Array
) -> Array:
    """Return the intercepts (first row) and the weights (other rows), ``(1 + c, c)``."""
    shape = start.shape

    def loss_and_gradient(flat: Array) -> tuple[float, Array]:
        parameters = flat.reshape(shape)
        logits = offset + parameters[0] + residuals @ parameters[1:]
        errors = np.where(known, expit(logits) - targets, 0.0)
        gradient = np.vstack([errors.sum(axis=0), residuals.T @ errors]) + ridge * parameters
        np.fill_diagonal(gradient[1:], 0.0)  # a label does not predict itself
        loss = _sum_of_log_losses(logits, targets, known) + ridge / 2 * (flat**2).sum()
        return loss, gradient.ravel()

    fit = minimize(
        loss_and_gradient,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MAX_STEPS, "ftol": 1e-7},
    )
    fitted: Array = fit.x.reshape(shape)
    return fitted


def _sum_of_log_losses(logits: Array, targets: Array, known: Flags) -> float:
    """Return the sum of the log losses of the known targets in nats."""
    return float(np.where(known, np.logaddexp(0, logits) - targets * logits, 0.0).sum())
