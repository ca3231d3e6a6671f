"""How far the surest pictures are less often wrong than the others."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from surelabel.decisions.checked import checked_decisions
from surelabel.records import Array


@dataclass(frozen=True)
class RiskCoverage:
    """Error rate of the surest pictures, for each share of pictures that is kept.

    Attributes:
        coverage: Share of the pictures kept, the surest first, rising to 1, ``(n,)``.
        risk: Mean error of those kept, ``(n,)``. The last one is that of all pictures.
        area: Mean of the risk over coverage; that of all pictures when sureness says nothing.
        best: The area if the pictures were sorted by their error itself: no order has less.
    """

    coverage: Array
    risk: Array
    area: float
    best: float


def risk_coverage(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> RiskCoverage:
    """Sort pictures by uncertainty and say how often the surest of them are wrong.

        uncertainty = mean entropy of the known labels of a picture, nats
        error       = their mean |[p >= 0.5] - y|

    Args:
        logits: Log-odds, ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.

    Returns:
        The curve and its area. Pictures of which nothing is known are left out; equally sure ones
        count with their mean error, so that their order in the file does not matter.

    Raises:
        InputError: shapes differ, a value is not what it must be, or nothing is known.

    Source:
        El-Yaniv and Wiener, On the Foundations of Noise-free Selective Classification, JMLR 2010;
        Geifman and El-Yaniv, Selective Classification for Deep Neural Networks, NeurIPS 2017,
        arXiv:1705.08500.

    Differs:
        They reject one decision of one label at a time; here a picture is kept or left whole.

    Example:
        >>> found = risk_coverage([[3.0, -3.0], [0.1, -3.0]], [[1, 0], [0, 0]])
        >>> found.coverage, found.risk, found.area, found.best
        (array([0.5, 1. ]), array([0.  , 0.25]), 0.125, 0.125)
    """
    p, y, known = checked_decisions(logits, targets, known)
    kept = known.any(axis=1)
    p, y, known = p[kept], y[kept], known[kept]
    uncertainty = np.mean(entr(p) + entr(1 - p), axis=1, where=known)
    error = np.mean(np.abs((p >= 0.5) - y), axis=1, where=known)
    _, group, size = np.unique(uncertainty, return_inverse=True, return_counts=True)
    risk = _running_mean((np.bincount(group, error) / size).repeat(size))
    coverage = np.arange(1, len(risk) + 1) / len(risk)
    return RiskCoverage(
        coverage, risk, float(risk.mean()), float(_running_mean(np.sort(error)).mean())
    )


def _running_mean(values: Array) -> Array:
    """Mean of the first one, two, three … values."""
    means: Array = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means
