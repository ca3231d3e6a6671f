"""Adaptive calibration error: expected calibration error with equal-mass bins."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.input_validation import (
    validate_probabilities,
    validate_whole_number,
)
from surelabel.metrics.binning.equal_mass_bins import assign_equal_mass_bins
from surelabel.records import Array


def adaptive_ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the expected calibration error with equal-mass bins, over all labels of all images.

        AECE = Σ_b  n_b / n · |accuracy_b - confidence_b|,   n_b about n / bins

    Most probabilities are close to 0. Most equal-mass bins therefore lie near 0, where equal-width
    bins have a single bin.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        bins: Number of equal-mass bins, >= 1. Equal probabilities share the bin of their mean
            rank, so bins may differ in size or be empty.

    Returns:
        Calibration error in [0, 1], 0 is best; NaN if no target is known.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Nixon et al., Measuring Calibration in Deep Learning, CVPR workshops 2019,
        arXiv:1904.01685: adaptive calibration error, here of the probability of each label.

    Differs:
        Tied probabilities share a bin. Code that sorts and splits them makes the result depend on
        the order of the rows. Bins are weighted by their counts.

    Example:
        >>> round(adaptive_ece([[0.1, 0.2, 0.7, 0.8]], [[0, 0, 0, 1]], bins=2), 4)
        0.2
    """
    p, y, known = validate_probabilities(probabilities, targets, known)
    if known.all():
        return _equal_mass_ece(p.ravel(), y.ravel(), validate_whole_number("bins", bins))
    return _equal_mass_ece(p[known], y[known], validate_whole_number("bins", bins))


def adaptive_ece_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``adaptive_ece`` of each class with separate bins, ``(c,)``.

    The value is NaN for a class without a known target.

    Source:
        ``adaptive_ece`` of each column.
    """
    p, y, known = validate_probabilities(probabilities, targets, known)
    bins = validate_whole_number("bins", bins)
    columns = zip(*(np.ascontiguousarray(a.T) for a in (p, y, known)), strict=True)
    return np.array([_equal_mass_ece(p[k], y[k], bins) for p, y, k in columns])


def _equal_mass_ece(p: Array, y: Array, bins: int) -> float:
    """Return the calibration error of known targets, ``(m,)`` each; NaN if there are none."""
    if not p.size:
        return float("nan")
    excess = np.bincount(assign_equal_mass_bins(p, bins), p - y, minlength=bins)
    return float(np.abs(excess).sum() / p.size)
