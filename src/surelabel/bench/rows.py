"""Define rows of comparison tables: metrics for each seed, and differences with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from surelabel.metrics import ConfidenceInterval, paired_t_interval


@dataclass(frozen=True)
class ComparisonRow:
    """One row of the tables of a comparison.

    Attributes:
        title: Title of the row.
        metrics: Values of each metric, one value for each seed. The key of the noise floor of
            METRIC is ``METRIC_noise_floor``.
    """

    title: str
    metrics: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over seeds."""
        return mean(self.metrics[metric])


def metrics_by_seed(values: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the values of each metric as a list over seeds.

    Args:
        values: Values by metric, one dictionary for each seed.

    Example:
        >>> metrics_by_seed([{"ece": 0.1, "log_loss": 0.5}, {"ece": 0.2, "log_loss": 0.4}])
        {'ece': [0.1, 0.2], 'log_loss': [0.5, 0.4]}
    """
    return {name: [of_seed[name] for of_seed in values] for name in values[0]}


def difference_over_seeds(first: Sequence[float], second: Sequence[float]) -> ConfidenceInterval:
    """Return the mean of ``first`` - ``second`` with its 95 % interval over seeds.

    A row that does not depend on the seed has one value, which is compared with each value of the
    other row.

    Args:
        first: Values of a metric, one for each seed, or one value.
        second: Values of the same metric for the same seeds, or one value.
    """
    return paired_t_interval(np.subtract(first, second))


def intervals_exclude_zero(*intervals: ConfidenceInterval) -> bool:
    """Return whether all confidence intervals are above 0, or all are below 0."""
    return all(interval.low > 0 for interval in intervals) or all(
        interval.high < 0 for interval in intervals
    )


@dataclass(frozen=True)
class RowDifference:
    """Difference in one metric between a row and its reference row, averaged over seeds.

    Attributes:
        value: Metric of the row minus the metric of the reference row.
        over_seeds: 95 % interval over seeds, for fixed test images.
        over_images: 95 % interval over test images, for fixed recognizers.
    """

    value: float
    over_seeds: ConfidenceInterval
    over_images: ConfidenceInterval

    @property
    def excludes_zero(self) -> bool:
        """Return whether both intervals are above 0, or both are below 0."""
        return intervals_exclude_zero(self.over_seeds, self.over_images)


def row_differences(
    first: Mapping[str, Sequence[float]],
    second: Mapping[str, Sequence[float]],
    over_images: Mapping[str, ConfidenceInterval],
) -> dict[str, RowDifference]:
    """Return the differences ``first`` - ``second`` of all metrics in ``over_images``.

    Args:
        first: Values of each metric of a row, one for each seed, or one value.
        second: Values of each metric of the reference row for the same seeds, or one value.
        over_images: Difference of each compared metric with its interval over test images.
    """
    differences = {}
    for name, interval in over_images.items():
        over_seeds = difference_over_seeds(first[name], second[name])
        differences[name] = RowDifference(over_seeds.value, over_seeds, interval)
    return differences
