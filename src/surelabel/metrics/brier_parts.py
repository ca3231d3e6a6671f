"""The Brier score taken apart: how calibrated, how informative, how hard the question."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.metrics.brier import brier, brier_per_class
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
from surelabel.records import Array, Flags


@dataclass(frozen=True)
class BrierParts:
    """Four numbers that add up: score = reliability - resolution + uncertainty + within.

    Each is a number, or ``(c,)`` with one for every class.

    Attributes:
        reliability: Mean squared gap of accuracy and confidence of the bins: calibration, 0 is
            best. It is ``squared_calibration_error``.
        resolution: How far the accuracy of the bins lies from that of all: what the probabilities
            tell apart, high is best.
        uncertainty: Variance of the targets: how hard the question is. Nothing of the model.
        within: What the bins hide: the variance of the probabilities inside a bin, less twice
            their covariance with the targets. Negative where probabilities still tell apart inside
            a bin.
    """

    reliability: Array
    resolution: Array
    uncertainty: Array
    within: Array

    @property
    def refinement(self) -> Array:
        """Uncertainty that the bins leave: uncertainty - resolution."""
        return self.uncertainty - self.resolution

    @property
    def score(self) -> Array:
        """The Brier score itself."""
        return self.reliability + self.refinement + self.within


def brier_parts(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> BrierParts:
    """Take the Brier score of all decisions apart, over bins of their probability.

        Brier = Σ_b n_b/n (accuracy_b - confidence_b)²  -  Σ_b n_b/n (accuracy_b - accuracy)²
                + variance of targets  +  within bins

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.

    Returns:
        Four numbers that add up to ``brier``; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        Murphy, A New Vector Partition of the Probability Score, Journal of Applied Meteorology,
        1973; the part within bins: Stephenson, Coelho and Jolliffe, Two Extra Components in the
        Brier Score Decomposition, Weather and Forecasting, 2008.

    Differs:
        Uncertainty is the variance of the targets, which for 0 and 1 is accuracy (1 - accuracy),
        so that graded targets add up too.

    Example:
        >>> parts = brier_parts([[0.1, 0.3, 0.8, 0.8]], [[0, 0, 1, 0]], bins=2)
        >>> [round(float(x), 4) for x in (parts.reliability, parts.resolution)]
        [0.065, 0.0625]
        >>> [round(float(x), 4) for x in (parts.uncertainty, parts.within, parts.score)]
        [0.1875, 0.005, 0.195]
    """
    score = np.asarray(brier(probabilities, targets, known))
    bins_of = reliability(probabilities, targets, known, bins=bins)
    _, y, known = checked_probabilities(probabilities, targets, known)
    return _parts(score, bins_of, _variance(y, known, axis=None))


def brier_parts_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> BrierParts:
    """``brier_parts`` of every class, each part ``(c,)``; NaN where nothing is known.

    Source:
        As ``brier_parts``, class by class.
    """
    score = brier_per_class(probabilities, targets, known)
    bins_of = reliability_per_class(probabilities, targets, known, bins=bins)
    _, y, known = checked_probabilities(probabilities, targets, known)
    return _parts(score, bins_of, _variance(y, known))


def _parts(score: Array, bins: Reliability, uncertainty: Array) -> BrierParts:
    total = bins.counts.sum(axis=-1)
    hits = np.where(bins.counts > 0, bins.counts * bins.accuracy, 0.0)
    overall = ratio(hits.sum(axis=-1), total)
    away = bins.accuracy - overall[..., None]
    calibration = ratio(np.nansum(bins.counts * bins.gaps**2, axis=-1), total)
    resolution = ratio(np.nansum(bins.counts * away**2, axis=-1), total)
    within = score - (calibration - resolution + uncertainty)
    return BrierParts(calibration, resolution, uncertainty, within)


def _variance(y: Array, known: Flags, axis: int | None = 0) -> Array:
    """Of the known targets, mean of squares less square of mean."""
    count = known.sum(axis=axis)
    return ratio((y * y).sum(axis=axis), count) - ratio(y.sum(axis=axis), count) ** 2
