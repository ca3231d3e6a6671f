"""Correct calibrated log-odds with a scale and a shift, from a small number of images."""

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.arrays import Array, validate_targets_to_read
from surelabel.blas_threads import single_blas_thread
from surelabel.calibration.fitting.input_validation import validate_calibrator_input
from surelabel.shapes import check_shapes

PRIOR_LOG_SCALE, PRIOR_SHIFT = float(np.log(2)), 1.0  # standard deviations of the prior
MAX_LOG_SCALE, MAX_SHIFT = float(np.log(20)), 10.0


@single_blas_thread()
def fit_scale_and_shift(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> tuple[float, float]:
    """Return the scale and the shift that correct calibrated log-odds, shrunk towards 1 and 0.

        z' = a · z + b,   a > 0
        minimize  Σ log(1 + exp(z')) - y · z'  +  log(a)² / (2 · log(2)²)  +  b² / 2

    where z is the log-odds of a label, y its target, a the scale and b the shift. The sum is over
    all known targets. Few targets hardly change the log-odds, and many targets determine a and b.

    Args:
        logits: Finite log-odds of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known.

    Returns:
        The scale in [0.05, 20] and the shift in [-10, 10], also without a positive target or
        without a negative target. Without a known target, they are 1 and 0.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, or if a known target is outside
            [0, 1].

    Source:
        Logistic recalibration: Steyerberg et al., Validation and Updating of Predictive Logistic
        Regression Models, Statistics in Medicine, 2004. The map is that of ``Platt``.

    Differs:
        The source has no prior. The prior is on the logarithm of the scale. Half or double log-odds
        are one standard deviation from the prior mean, and so is a factor of e of the odds.

    Example:
        >>> z = np.linspace(-4, 2, 600)[:, None]
        >>> y = np.random.default_rng(0).random(z.shape) < expit(z)
        >>> scale, shift = fit_scale_and_shift(2 * z + 1, y)
        >>> round(scale, 1), round(shift, 1)
        (0.5, -0.5)
    """
    z = validate_calibrator_input(logits)
    y, is_known = validate_targets_to_read(targets, known)
    check_shapes(logits=(z, "n c"), targets=(y, "n c"))
    return _minimize_penalized_loss(z[is_known], y[is_known])


def _minimize_penalized_loss(z: Array, y: Array) -> tuple[float, float]:
    """Return the scale and the shift with the lowest penalized log loss.

    Args:
        z: Log-odds, ``(n,)``.
        y: Targets in [0, 1], ``(n,)``.
    """

    def loss(parameters: Array) -> tuple[float, Array]:
        log_scale, shift = parameters
        scaled = np.exp(log_scale) * z
        corrected = scaled + shift
        residuals = expit(corrected) - y
        penalties = parameters / np.square([PRIOR_LOG_SCALE, PRIOR_SHIFT])
        value = (np.logaddexp(0, corrected) - y * corrected).sum() + parameters @ penalties / 2
        return float(value), np.array([residuals @ scaled, residuals.sum()]) + penalties

    solution = minimize(
        loss,
        [0.0, 0.0],
        jac=True,
        method="L-BFGS-B",
        bounds=[(-MAX_LOG_SCALE, MAX_LOG_SCALE), (-MAX_SHIFT, MAX_SHIFT)],
        options={"ftol": 1e-13, "gtol": 1e-7},
    )
    return float(np.exp(solution.x[0])), float(solution.x[1])
