"""Data classes of the results of the calibration comparison."""

from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from surelabel.bench.calibrated.plan import CalibrationPlan
from surelabel.metrics import ConfidenceInterval, ReliabilityBins

NEAR_BEST = 0.01  # largest distance from the best mean average precision of a bold row


@dataclass(frozen=True)
class CalibrationRow:
    """One row of the metrics table.

    Attributes:
        title: Title of the row: loss, readout and calibrator.
        head: Key of the fitted head in ``HEADS``.
        settings: Settings selected on the validation split, by name.
        metrics: Values of each metric, one value for each fit. The key of the noise floor of METRIC
            is ``METRIC_noise_floor``.
    """

    title: str
    head: str
    settings: dict[str, float]
    metrics: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over fits."""
        return mean(self.metrics[metric])


@dataclass(frozen=True)
class RowComparison:
    """Difference of two rows: the metrics of the first row minus those of the second row.

    Attributes:
        first: Title of the first row.
        second: Title of the second row.
        over_seeds: Mean difference with its 95 % interval over fits, by metric. All fits are
            evaluated on the same test images.
        over_images: Difference of the first fits with its 95 % interval over test images, by
            metric.
    """

    first: str
    second: str
    over_seeds: dict[str, ConfidenceInterval]
    over_images: dict[str, ConfidenceInterval]


@dataclass(frozen=True)
class CalibrationResults:
    """All measurements of the calibration comparison on one dataset.

    Attributes:
        dataset: Title of the dataset.
        images: Numbers of training, validation and test images.
        labels: Number of labels.
        plan: Sizes and settings of the comparison.
        rows: Rows of the metrics table.
        comparisons: Differences of pairs of rows, with confidence intervals.
        sensitivity: Metrics of SPA with one setting changed, one entry for each changed value.
        retrieval: Retrieval results of `measure_calibrated_retrieval`, by row title.
        reliability: Reliability bins of the first fit on the test images, by row title.
    """

    dataset: str
    images: tuple[int, ...]
    labels: int
    plan: CalibrationPlan
    rows: tuple[CalibrationRow, ...]
    comparisons: tuple[RowComparison, ...]
    sensitivity: tuple[dict[str, Any], ...]
    retrieval: dict[str, dict[str, Any]] = field(default_factory=dict)
    reliability: dict[str, ReliabilityBins] = field(default_factory=dict)

    def row(self, title: str) -> CalibrationRow:
        """Return the row with the given title."""
        return next(row for row in self.rows if row.title == title)

    def comparison(self, first: str, second: str) -> RowComparison:
        """Return the difference between the rows with the given titles."""
        return next(c for c in self.comparisons if (c.first, c.second) == (first, second))

    @property
    def near_best(self) -> set[str]:
        """Titles of the rows within one point of the best mean average precision."""
        values = {row.title: row.mean("mean_average_precision") for row in self.rows}
        best = max(values.values())
        return {title for title, value in values.items() if value >= best - NEAR_BEST}
