"""Compute the number of labelled images that a method needs to reach a metric value."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np

from surelabel.metrics import ConfidenceInterval


@dataclass(frozen=True)
class LabelDemand:
    """Number of labelled images that a method needs to reach a metric value.

    Attributes:
        level: Value of the metric.
        count: Number of labelled images at which the metric reaches the value. If the smallest
            measured number reaches the value, the count is that number. If no measured number
            reaches the value, the count is infinity.
        low: Number of labelled images at which the upper ends of the intervals reach the value.
        high: Number of labelled images at which the lower ends of the intervals reach the value.
    """

    level: float
    count: float
    low: float
    high: float


def labels_needed(
    counts: Sequence[int], intervals: Sequence[ConfidenceInterval], levels: Sequence[float]
) -> tuple[LabelDemand, ...]:
    """Return the number of labelled images at which a curve first reaches each level.

    Between two measured numbers of images n, the metric is interpolated linearly in log n.

    Args:
        counts: Measured numbers of labelled images, in ascending order.
        intervals: Mean of the metric with its interval, for each number of images. An end that is
            NaN, as for one seed, reaches no level.
        levels: Values of the metric.

    Example:
        >>> flat = [ConfidenceInterval(value, value, value) for value in (0.4, 0.6, 0.8)]
        >>> demands = labels_needed([10, 100, 1000], flat, [0.3, 0.5, 0.9])
        >>> [round(demand.count, 1) for demand in demands]
        [10, 31.6, inf]
    """
    means, lows, highs = np.array([[i.value, i.low, i.high] for i in intervals]).T
    return tuple(
        LabelDemand(
            level,
            _first_count_at_level(counts, means, level),
            _first_count_at_level(counts, highs, level),
            _first_count_at_level(counts, lows, level),
        )
        for level in levels
    )


def _first_count_at_level(counts: Sequence[int], values: Sequence[float], level: float) -> float:
    for i, value in enumerate(values):
        if value >= level:
            if i == 0:
                return counts[0]
            share = (level - values[i - 1]) / (value - values[i - 1])
            ratio = log(counts[i] / counts[i - 1])
            return float(counts[i - 1] * np.exp(share * ratio))
    return inf
