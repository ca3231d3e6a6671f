"""Calibration errors without the part that chance adds.

A gap measured on few decisions is never 0, and squares and distances add that up. The error of one
decision multiplied with that of another has no such part: it is 0 in the mean where probabilities
are right. Labels of one picture are wrong together, so the two come from different pictures.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.metrics.whole import whole
from surelabel.records import Array, Flags


def squared_calibration_error_debiased(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """``squared_calibration_error`` of all decisions without its bias: around 0 when calibrated.

        Σ_b  n_b / n · mean of (p - y)(p' - y') over pairs of decisions of two pictures

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1. One with decisions of a
            single picture says nothing and is left out.

    Returns:
        A number up to 1, negative by chance as often as positive when calibrated; NaN when no bin
        holds two pictures.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019, arXiv:1909.10155; the
        same for forecasts of weather: Ferro and Fricker, A Bias-Corrected Decomposition of the
        Brier Score, Quarterly Journal of the Royal Meteorological Society, 2012.

    Differs:
        They subtract accuracy (1 - accuracy) / (n_b - 1) from each squared gap, which is the same
        where all probabilities of a bin are equal and no picture stands in it twice; pairs stay
        unbiased where they are not. Twice the same data is less noise to it, so the same pictures
        must not be given twice.

    Example:
        >>> p, y = [[0.3], [0.3], [0.3], [0.3]], [[1], [0], [0], [0]]
        >>> round(squared_calibration_error_debiased(p, y), 4)
        -0.06
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    return _squared(*_by_picture(p, y, known, whole("bins", bins)))


def squared_calibration_error_debiased_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``squared_calibration_error_debiased`` of every class, ``(c,)``.

    Source:
        As ``squared_calibration_error_debiased``, class by class.
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    bins = whole("bins", bins)
    columns = ([c] for c in range(p.shape[1]))
    return np.array(
        [_squared(*_by_picture(p[:, c], y[:, c], known[:, c], bins)) for c in columns], dtype=float
    )


def ece_debiased(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """``ece`` of all decisions, less what chance is estimated to have added to each gap.

        Σ_b  n_b / n · (2 · gap_b - mean of |N(gap_b, its variance)|)

    A distance cannot be freed of all bias, as its square can: 0.59 of it stays where a bin is
    calibrated, and next to none where its gap is a standard error wide or more. Nothing is known of
    the noise of a bin without two pictures; such bins are left out.

    Args:
        probabilities: As for ``squared_calibration_error_debiased``.
        targets: As for ``squared_calibration_error_debiased``.
        known: As for ``squared_calibration_error_debiased``.
        bins: As for ``squared_calibration_error_debiased``.

    Returns:
        A number up to 1, negative by chance; NaN when no bin holds two pictures.

    Raises:
        InputError: as for ``squared_calibration_error_debiased``.
        ConfigError: as for ``squared_calibration_error_debiased``.

    Source:
        Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019, arXiv:1909.10155, who
        draw from the normal distribution what is its mean here.

    Differs:
        The variance of a gap is that between pictures, whose labels are wrong together.

    Example:
        >>> p, y = [[0.3], [0.3], [0.3], [0.3]], [[1], [0], [0], [0]]
        >>> round(ece_debiased(p, y), 4)
        -0.1034
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    errors, counts = _by_picture(p, y, known, whole("bins", bins))
    size, pictures = counts.sum(axis=0), np.count_nonzero(counts, axis=0)
    several = pictures > 1
    errors, counts, size, pictures = (a[..., several] for a in (errors, counts, size, pictures))
    gap = errors.sum(axis=0) / size
    squares = ((errors - counts * gap) ** 2).sum(axis=0) * pictures / (pictures - 1)
    unbiased = 2 * np.abs(gap) - _mean_distance(np.abs(gap), np.sqrt(squares) / size)
    return float(ratio((size * unbiased).sum(), size.sum()))


def _by_picture(p: Array, y: Array, known: Flags, bins: int) -> tuple[Array, Array]:
    """Of each picture and bin the sum of p - y and the number of decisions, (n, bins)."""
    pictures = len(p)
    cell = np.searchsorted(np.arange(1, bins) / bins, p, side="right")
    cell += np.arange(pictures)[:, None] * bins
    sums = [
        np.bincount(cell[known], weights, pictures * bins) for weights in ((p - y)[known], None)
    ]
    errors, counts = (s.reshape(pictures, bins).astype(float) for s in sums)
    return errors, counts


def _squared(errors: Array, counts: Array) -> float:
    """All pairs less those of a picture with itself."""
    size = counts.sum(axis=0)
    pairs = size**2 - (counts**2).sum(axis=0)
    products = errors.sum(axis=0) ** 2 - (errors**2).sum(axis=0)
    weight = np.where(pairs > 0, size, 0.0)
    return float(ratio((weight * ratio(products, pairs))[pairs > 0].sum(), weight.sum()))


def _mean_distance(mean: Array, deviation: Array) -> Array:
    """Mean of |x| for x from a normal distribution; ``mean`` where the deviation is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(deviation > 0, mean / deviation, np.inf)
    bell = np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)
    distance: Array = deviation * bell + mean * (1 - 2 * ndtr(-z))
    return distance
