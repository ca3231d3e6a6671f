"""Test whether probabilities are calibrated, by a score test with sampled targets."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, validate_target_arrays
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_metric_whole_number
from surelabel.shapes import check_shapes

MAX_SAMPLED_TARGETS = 2**22  # targets that are sampled at once, which limits the memory


def calibration_test_p_value(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> float:
    """Return the p-value of the hypothesis that the probabilities of log-odds are calibrated.

        S = Σ (y - p) · (z, 1),   I = Σ p (1 - p) · (z, 1)ᵀ(z, 1),   T = S I⁻¹ Sᵀ

    where z is the log-odds of a label, p its probability and y its target. T is large if a scale
    and a shift of the log-odds fit the targets better. T is compared with its values on targets
    that are sampled from the probabilities. The test is therefore valid for few positive targets.

    Args:
        logits: Log-odds of n images and c labels, ``(n, c)``, finite where the target is known.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known.
        resamples: Number of sampled target matrices, >= 1.
        seed: Seed of the sampling.

    Returns:
        The p-value in (0, 1]: the share of target matrices with at least the T of the given
        targets, which are counted too.

    Raises:
        InputError: If the shapes differ, a logit of a known target is not finite, no target is
            known, or a known target is outside [0, 1].
        ConfigError: If ``resamples`` is not a whole number >= 1.

    Source:
        Cox, Two Further Applications of a Model for Binary Regression, Biometrika, 1958: test of
        slope and intercept. Sampled targets: see ``noise_floor``.

    Differs:
        The sampled targets of an image are independent. Dependent labels reduce the p-value.

    Example:
        >>> z = np.linspace(-4, 2, 300)[:, None]
        >>> y = np.random.default_rng(1).random(z.shape) < expit(z)
        >>> calibration_test_p_value(z, y) > 0.05, calibration_test_p_value(2 * z + 1, y) < 0.01
        (True, True)
    """
    values = np.asarray(logits, dtype=np.float64)
    y, is_known = validate_target_arrays(targets, known)
    check_shapes(logits=(values, "n c"), targets=(y, "n c"))
    resamples = validate_metric_whole_number("resamples", resamples)
    z, y = values[is_known], y[is_known]
    if not z.size or not np.isfinite(z).all():
        raise InputError(
            "The test of calibration needs finite log-odds and at least one known target; got "
            f"{z.size} known targets. Annotate images, or remove log-odds that are not finite."
        )
    p = expit(z)
    terms = np.stack([z, np.ones_like(z)])
    inverse = np.linalg.pinv((terms * p * (1 - p)) @ terms.T)
    observed = _score_statistic(terms, inverse, (y - p)[:, None])[0]
    random, n_block = np.random.default_rng(seed), max(1, MAX_SAMPLED_TARGETS // z.size)
    n_larger = 0
    for start in range(0, resamples, n_block):
        n_sampled = min(n_block, resamples - start)
        sampled = p[:, None] > random.random((n_sampled, z.size)).T
        sampled_statistics = _score_statistic(terms, inverse, sampled - p[:, None])
        n_larger += int((sampled_statistics >= observed * (1 - 1e-9)).sum())
    return (1 + n_larger) / (1 + resamples)


def _score_statistic(terms: Array, inverse: Array, residuals: Array) -> Array:
    """Return the statistic T of the columns of residuals ``(n, r)``, ``(r,)``."""
    scores = terms @ residuals
    statistic: Array = np.einsum("ir,ij,jr->r", scores, inverse, scores)
    return statistic
