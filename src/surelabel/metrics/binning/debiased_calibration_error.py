"""Calibration errors corrected for the bias that sampling noise adds.

The squared or absolute gap of a bin is never 0 for a finite sample, even if the probabilities are
calibrated. The product of the errors of two labels is unbiased: if the probabilities are
calibrated, the expected product is 0. Errors of labels of the same image are correlated, so each
product combines the errors of two images.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
)
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.records import Array, Flags


def squared_calibration_error_debiased(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return an unbiased estimate of ``squared_calibration_error``, which may be negative.

        Σ_b  n_b / n · mean of (p - y)(p' - y') over pairs of labels of two images

    where bin b contains n_b of the n known targets, p is the probability and y is the target of a
    label, and p' and y' are the probability and target of a label of another image in the same bin.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1. Bins with labels
            of a single image are left out.

    Returns:
        Squared calibration error, at most 1. If the probabilities are calibrated, the expected
        value is 0 and a single value may be negative. If no bin has labels of two images, the value
        is NaN.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019, arXiv:1909.10155; for
        weather forecasts: Ferro and Fricker, A Bias-Corrected Decomposition of the Brier Score,
        Quarterly Journal of the Royal Meteorological Society, 2012.

    Differs:
        They subtract accuracy (1 - accuracy) / (n_b - 1) from each squared gap. Both are equal if
        all probabilities of a bin are equal and each image occurs once in it; otherwise only the
        pairs are unbiased. Repeated data reduces the estimated noise, so images must not be
        duplicated.

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
    """Return ``squared_calibration_error_debiased`` of each class, ``(c,)``.

    Source:
        ``squared_calibration_error_debiased`` of each column.
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
    """Return ``ece`` minus the estimated effect of sampling noise on the gap of each bin.

        Σ_b  n_b / n · (2 · gap_b - mean of |x_b|),   x_b ~ N(gap_b, variance of gap_b)

    where bin b contains n_b of the n known targets and gap_b is the absolute difference of accuracy
    and confidence of the bin. The bias of an absolute gap cannot be removed completely. If a bin is
    calibrated, 59 % of the bias remains; if the gap is at least one standard error, almost no bias
    remains. Bins with labels of a single image are left out, because the noise of such bins cannot
    be estimated.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1.

    Returns:
        Calibration error, at most 1 and possibly negative. If no bin has labels of two images, the
        value is NaN.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019, arXiv:1909.10155. They
        sample from the normal distribution; here its mean is computed in closed form.

    Differs:
        The variance of a gap is the variance between images, whose labels have correlated errors.

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
    """Return the sum of p - y and the count of each image and bin, ``(n, bins)`` each."""
    n_images = len(p)
    cell = np.searchsorted(np.arange(1, bins) / bins, p, side="right")
    cell += np.arange(n_images)[:, None] * bins
    sums = [
        np.bincount(cell[known], weights, n_images * bins) for weights in ((p - y)[known], None)
    ]
    errors, counts = (s.reshape(n_images, bins).astype(float) for s in sums)
    return errors, counts


def _debiased_squared_error(errors: Array, counts: Array) -> float:
    """Return the mean product of two errors of different images, weighted by bin counts."""
    size = counts.sum(axis=0)
    n_pairs = size**2 - (counts**2).sum(axis=0)
    products = errors.sum(axis=0) ** 2 - (errors**2).sum(axis=0)
    weight = np.where(n_pairs > 0, size, 0.0)
    terms = (weight * divide_or_nan(products, n_pairs))[n_pairs > 0]
    return float(divide_or_nan(terms.sum(), weight.sum()))


def _expected_noisy_gap_for_debiased_ece(mean: Array, deviation: Array) -> Array:
    """Return the mean of |x| for a normally distributed x; ``mean`` if the deviation is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(deviation > 0, mean / deviation, np.inf)
    density_term = np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)
    mean_absolute: Array = deviation * density_term + mean * (1 - 2 * ndtr(-z))
    return mean_absolute
