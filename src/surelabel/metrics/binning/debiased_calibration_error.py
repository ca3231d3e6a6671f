"""Compute calibration errors that are corrected for the bias of sampling noise.

The gap of a bin is the absolute difference between fraction of positives and mean probability. In a
finite sample, the gap of a bin is rarely 0, even if the probabilities are calibrated. The error of
a label is the difference p - y between probability and target. If the probabilities are calibrated,
the expected product of the errors of two independent labels is 0. Errors of labels of the same
image are correlated, so each product combines labels of two different images.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
)
from surelabel.metrics.arrays.nan_division import divide_or_nan


def squared_calibration_error_debiased(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return an unbiased estimate of ``squared_calibration_error``, which may be negative.

        Σ_b  n_b / N · mean of (p - y)(p' - y') over pairs of labels of two images

    where bin b contains n_b known targets, and p and y are the probability and the target of a
    label in the bin. The symbols p' and y' are the probability and the target of a label of another
    image in the same bin. N is the number of known targets in all bins that are not left out.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1. Bins with labels
            of only one image are left out.

    Returns:
        Squared calibration error, at most 1. If the probabilities are calibrated, the expected
        value is 0, so the value of a dataset may be negative. If no bin has labels of at least two
        images, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019, arXiv:1909.10155; for
        weather forecasts: Ferro and Fricker, A Bias-Corrected Decomposition of the Brier Score,
        Quarterly Journal of the Royal Meteorological Society, 2012.

    Differs:
        Kumar et al. subtract accuracy_b · (1 - accuracy_b) / (n_b - 1) from the squared gap of each
        bin, where accuracy_b is the fraction of positives in the bin. Both estimates are equal if
        all probabilities in a bin are equal and each image has at most one label in the bin.
        Otherwise, only the estimate from pairs is unbiased. Remove duplicate images, because
        duplicates reduce the estimated noise.

    Example:
        >>> p, y = [[0.3], [0.3], [0.3], [0.3]], [[1], [0], [0], [0]]
        >>> round(squared_calibration_error_debiased(p, y), 4)
        -0.06
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    return _debiased_squared_error(
        *_debiased_error_sums_per_image(p, y, known, validate_metric_whole_number("bins", bins))
    )


def squared_calibration_error_debiased_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``squared_calibration_error_debiased`` for each of the c classes, ``(c,)``.

    If no bin of a class has labels of at least two images, the value of the class is NaN.

    Source:
        See ``squared_calibration_error_debiased``, computed here for each column.
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    bins = validate_metric_whole_number("bins", bins)
    columns = ([c] for c in range(p.shape[1]))
    per_class = [
        _debiased_squared_error(
            *_debiased_error_sums_per_image(p[:, c], y[:, c], known[:, c], bins)
        )
        for c in columns
    ]
    return np.array(per_class, dtype=float)


def ece_debiased(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return ``ece`` minus the estimated bias that sampling noise adds to the gap of each bin.

        Σ_b  n_b / N · (2 · gap_b - mean of |x_b|),   x_b ~ Normal(gap_b, variance of gap_b)

    where bin b contains n_b known targets and gap_b is the absolute difference between the fraction
    of positives and the mean probability in the bin. N is the number of known targets in all bins
    that are not left out. The bias of an absolute gap cannot be removed completely. If a bin is
    calibrated, 59 % of the bias remains. If the true gap is at least one standard error, the
    estimated gap is on average too low, by less than 0.1 standard errors. Bins with labels of only
    one image are left out, because their noise cannot be estimated.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.

    Returns:
        Calibration error, at most 1 and possibly negative. If no bin has labels of at least
        two images, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019, arXiv:1909.10155. The
        paper estimates the mean of |x_b| from samples; here the mean is computed in closed form.

    Differs:
        The variance of a gap is estimated from the variation between images, because the errors of
        labels of the same image are correlated.

    Example:
        >>> p, y = [[0.3], [0.3], [0.3], [0.3]], [[1], [0], [0], [0]]
        >>> round(ece_debiased(p, y), 4)
        -0.1034
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    errors, counts = _debiased_error_sums_per_image(
        p, y, known, validate_metric_whole_number("bins", bins)
    )
    size, n_images = counts.sum(axis=0), np.count_nonzero(counts, axis=0)
    has_two = n_images > 1
    errors, counts, size, n_images = (a[..., has_two] for a in (errors, counts, size, n_images))
    gap = errors.sum(axis=0) / size
    squares = ((errors - counts * gap) ** 2).sum(axis=0) * n_images / (n_images - 1)
    debiased = 2 * np.abs(gap) - _expected_noisy_gap_for_debiased_ece(
        np.abs(gap), np.sqrt(squares) / size
    )
    return float(divide_or_nan((size * debiased).sum(), size.sum()))


def _debiased_error_sums_per_image(
    p: Array, y: Array, known: Flags, bins: int
) -> tuple[Array, Array]:
    """Return the sum of p - y and the number of known targets by image and bin, ``(n, bins)``."""
    n_images = len(p)
    cell = np.searchsorted(np.arange(1, bins) / bins, p, side="right")
    cell += np.arange(n_images)[:, None] * bins
    sums = [
        np.bincount(cell[known], weights, n_images * bins) for weights in ((p - y)[known], None)
    ]
    errors, counts = (s.reshape(n_images, bins).astype(float) for s in sums)
    return errors, counts


def _debiased_squared_error(errors: Array, counts: Array) -> float:
    """Return the mean product of the errors of two different images, weighted by bin counts."""
    size = counts.sum(axis=0)
    n_pairs = size**2 - (counts**2).sum(axis=0)
    products = errors.sum(axis=0) ** 2 - (errors**2).sum(axis=0)
    weight = np.where(n_pairs > 0, size, 0.0)
    terms = (weight * divide_or_nan(products, n_pairs))[n_pairs > 0]
    return float(divide_or_nan(terms.sum(), weight.sum()))


def _expected_noisy_gap_for_debiased_ece(mean: Array, deviation: Array) -> Array:
    """Return the mean of |x| for x ~ Normal(mean, deviation²), or ``mean`` if deviation is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(deviation > 0, mean / deviation, np.inf)
    density_term = np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)
    mean_absolute: Array = deviation * density_term + mean * (1 - 2 * ndtr(-z))
    return mean_absolute
