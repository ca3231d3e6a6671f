"""How often the label is there, for decisions of about the same probability."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.metrics.blocks import blocks
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.metrics.whole import whole
from surelabel.records import Array, Flags


@dataclass(frozen=True)
class Reliability:
    """Decisions in bins of equal width: [k/bins, (k+1)/bins), the last one closed.

    Attributes:
        counts: Known decisions in every bin, ``(..., bins)``.
        confidence: Mean probability in every bin, NaN where it is empty.
        accuracy: Share of present labels in every bin, NaN where it is empty.
    """

    counts: Array
    confidence: Array
    accuracy: Array

    @property
    def gaps(self) -> Array:
        """Distance of accuracy and confidence, NaN where the bin is empty."""
        return np.abs(self.accuracy - self.confidence)


def reliability(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Reliability:
    """Put all known decisions, whatever picture and class, into bins by their probability.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: How many, of equal width, >= 1.

    Returns:
        One number a bin, ``(bins,)``.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015; the probability of the label being present, not of the top answer.

    Example:
        >>> reliability([[0.1, 0.9]], [[0, 1]], bins=2)
        Reliability(counts=array([1., 1.]), confidence=array([0.1, 0.9]), accuracy=array([0., 1.]))
    """
    counts, confidence, accuracy = _sums(probabilities, targets, known, bins).sum(axis=1)
    return Reliability(counts, ratio(confidence, counts), ratio(accuracy, counts))


def reliability_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Reliability:
    """``reliability`` of every class, with ``(c, bins)`` numbers.

    Source:
        As ``reliability``, class by class.
    """
    counts, confidence, accuracy = _sums(probabilities, targets, known, bins)
    return Reliability(counts, ratio(confidence, counts), ratio(accuracy, counts))


def _sums(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None, bins: int
) -> Array:
    """Counts, sums of probabilities and sums of targets of each class and bin, (3, c, bins)."""
    bins = whole("bins", bins)
    p, y, known = checked_probabilities(probabilities, targets, known)
    sums = np.zeros((3, p.shape[1], bins))
    for block in blocks(p, y, known):
        sums += _sums_of_rows(*block, bins=bins)
    return sums


def _sums_of_rows(p: Array, y: Array, known: Flags, *, bins: int) -> Array:
    """As ``_sums``, of a few pictures."""
    classes = p.shape[1]
    cell = _bin(p, bins)
    cell += np.arange(classes) * bins
    if known.all():
        cell, p, y = cell.ravel(), p.ravel(), y.ravel()
    else:
        cell, p, y = cell[known], p[known], y[known]
    sums = [np.bincount(cell, weights, classes * bins) for weights in (None, p, y)]
    return np.array(sums, dtype=float).reshape(3, classes, bins)


def _bin(p: Array, bins: int) -> npt.NDArray[np.intp]:
    """The bin of every probability; exact also where p · bins is rounded across an edge."""
    place = p * bins
    bin_ = place.astype(np.intp)
    place -= bin_
    near = (place < 1e-9) | (place > 1 - 1e-9)
    bin_[near] = np.searchsorted(np.arange(1, bins) / bins, p[near], side="right")
    return bin_
