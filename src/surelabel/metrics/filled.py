"""ACE and MCE of the bins that hold enough decisions to say anything."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
from surelabel.metrics.whole import whole
from surelabel.records import Array


def ace_of_filled(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    least: int = 20,
) -> float:
    """``ace`` of all decisions without the bins that hold few of them.

    A bin of a single decision has a gap of up to 1 by chance alone, and ``ace`` counts it like any
    other. What is left out is said by ``reliability(...).counts``.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.
        least: Known decisions that a bin must hold to count, >= 1.

    Returns:
        A number in [0, 1], 0 is best; NaN when no bin holds enough.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` or ``least`` is not a whole number of at least 1.

    Source:
        As ``ace``.

    Differs:
        The mean is over the bins that count; netcal's, with ``sample_threshold``, takes the others
        as 0.

    Example:
        >>> round(ace_of_filled([[0.1, 0.9, 0.9]], [[0, 1, 0]], least=2), 4)
        0.4
    """
    bins_of = reliability(probabilities, targets, known, bins=bins)
    return float(_mean(_filled_gaps(bins_of, least)))


def ace_of_filled_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    least: int = 20,
) -> Array:
    """``ace_of_filled`` of every class, ``(c,)``; NaN for a class without a filled bin.

    Source:
        As ``ace_of_filled``, class by class.
    """
    bins_of = reliability_per_class(probabilities, targets, known, bins=bins)
    return _mean(_filled_gaps(bins_of, least))


def mce_of_filled(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    least: int = 20,
) -> float:
    """``mce`` of all decisions without the bins that hold few of them.

    Args:
        probabilities: As for ``ace_of_filled``.
        targets: As for ``ace_of_filled``.
        known: As for ``ace_of_filled``.
        bins: As for ``ace_of_filled``.
        least: As for ``ace_of_filled``.

    Returns:
        A number in [0, 1], 0 is best; NaN when no bin holds enough.

    Raises:
        InputError: as for ``ace_of_filled``.
        ConfigError: as for ``ace_of_filled``.

    Source:
        As ``mce``; the same as netcal's with ``sample_threshold``.

    Example:
        >>> round(mce_of_filled([[0.3, 0.9, 0.9]], [[1, 1, 0]], least=2), 4)
        0.4
    """
    bins_of = reliability(probabilities, targets, known, bins=bins)
    return float(np.fmax.reduce(_filled_gaps(bins_of, least)))


def mce_of_filled_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    least: int = 20,
) -> Array:
    """``mce_of_filled`` of every class, ``(c,)``; NaN for a class without a filled bin.

    Source:
        As ``mce_of_filled``, class by class.
    """
    bins_of = reliability_per_class(probabilities, targets, known, bins=bins)
    widest: Array = np.fmax.reduce(_filled_gaps(bins_of, least), axis=-1)
    return widest


def _filled_gaps(bins: Reliability, least: int) -> Array:
    """The gap of every bin, NaN where it holds too few decisions."""
    return np.where(bins.counts >= whole("least", least), bins.gaps, np.nan)


def _mean(gaps: Array) -> Array:
    """Of all that is not NaN."""
    return ratio(np.nansum(gaps, axis=-1), np.count_nonzero(~np.isnan(gaps), axis=-1))
