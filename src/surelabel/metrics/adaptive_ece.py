"""Compute the adaptive expected calibration error, with bins of about equal counts."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
)
from surelabel.metrics.binning.equal_mass_bins import assign_equal_mass_bins


def adaptive_ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return the expected calibration error with equal-mass bins, over all labels of all images.

        AECE = Σ_b  n_b / N · |accuracy_b - confidence_b|,   n_b ≈ N / bins

    where bin b contains n_b of the N known targets, accuracy_b is the fraction of positives in the
    bin and confidence_b is the mean probability in the bin. Equal-mass bins contain about equal
    numbers of targets. Most probabilities are close to 0, where equal-mass bins are narrower than
    equal-width bins.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-mass bins, >= 1. Equal probabilities are assigned to the same bin, so
            bins may differ in size or be empty.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Nixon et al., Measuring Calibration in Deep Learning, CVPR workshops 2019,
        arXiv:1904.01685: adaptive calibration error. It is computed here from the probability of
        each label.

    Differs:
        Equal probabilities are in the same bin. In implementations that split ties between bins,
        the error depends on the order of the rows. Here each bin is weighted by its number of known
        targets. In the paper, all bins have equal weight.

    Example:
        >>> round(adaptive_ece([[0.1, 0.2, 0.7, 0.8]], [[0, 0, 0, 1]], bins=2), 4)
        0.2
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    if known.all():
        return _adaptive_ece_of_known_targets(
            p.ravel(), y.ravel(), validate_metric_whole_number("bins", bins)
        )
    return _adaptive_ece_of_known_targets(
        p[known], y[known], validate_metric_whole_number("bins", bins)
    )


def adaptive_ece_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``adaptive_ece`` for each of the c classes with separate bins, ``(c,)``.

    The value is NaN for a class without a known target.

    Source:
        See ``adaptive_ece``, computed here for each column.
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    bins = validate_metric_whole_number("bins", bins)
    columns = zip(*(np.ascontiguousarray(a.T) for a in (p, y, known)), strict=True)
    return np.array([_adaptive_ece_of_known_targets(p[k], y[k], bins) for p, y, k in columns])


def _adaptive_ece_of_known_targets(p: Array, y: Array, bins: int) -> float:
    """Return the calibration error of m known targets, ``(m,)``, or NaN if m = 0."""
    if not p.size:
        return float("nan")
    excess = np.bincount(assign_equal_mass_bins(p, bins), p - y, minlength=bins)
    return float(np.abs(excess).sum() / p.size)
