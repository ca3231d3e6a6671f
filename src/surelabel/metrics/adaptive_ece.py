"""Calibration error over bins that hold equally many decisions, wherever these lie."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.equal_mass import equal_mass
from surelabel.metrics.whole import whole
from surelabel.records import Array


def adaptive_ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """``ece`` of all decisions, in bins of equal mass: sorted by probability, cut into equal parts.

        AECE = Σ_b  n_b / n · |accuracy_b - confidence_b|,   n_b about n / bins

    Most labels are plainly absent, so most of these bins lie near 0 and look closely there, where
    bins of equal width see a single one.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: How many parts, >= 1. Equal probabilities stay together, in the part that holds the
            middle of them, so parts may differ in size or be empty.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        Nixon et al., Measuring Calibration in Deep Learning, CVPR workshops 2019,
        arXiv:1904.01685: adaptive calibration error, here of the label being present.

    Differs:
        Ties stay together: cutting them by their order in the file, as code that sorts and splits
        does, makes the answer depend on that order. Parts are weighted by their size.

    Example:
        >>> round(adaptive_ece([[0.1, 0.2, 0.7, 0.8]], [[0, 0, 0, 1]], bins=2), 4)
        0.2
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    if known.all():
        return _error(p.ravel(), y.ravel(), whole("bins", bins))
    return _error(p[known], y[known], whole("bins", bins))


def adaptive_ece_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``adaptive_ece`` of every class in bins of its own, ``(c,)``; NaN where nothing is known.

    Source:
        As ``adaptive_ece``, class by class.
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    bins = whole("bins", bins)
    columns = zip(*(np.ascontiguousarray(a.T) for a in (p, y, known)), strict=True)
    return np.array([_error(p[k], y[k], bins) for p, y, k in columns])


def _error(p: Array, y: Array, bins: int) -> float:
    """All the decisions given are known, ``(n,)``."""
    if not p.size:
        return float("nan")
    excess = np.bincount(equal_mass(p, bins), p - y, minlength=bins)
    return float(np.abs(excess).sum() / p.size)
