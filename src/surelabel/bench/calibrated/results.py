"""What a comparison found."""

from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from surelabel.bench.calibrated.plan import Plan
from surelabel.metrics import Interval, Reliability

NEAR = 0.01  # of mean average precision: rows this near the best are marked


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        title: A loss, how it is read, and what calibrated it.
        head: Which fitted heads it reads.
        chosen: The settings that validation chose.
        values: Metric → one value a seed; ``METRIC_by_chance`` is its noise floor.
    """

    title: str
    head: str
    chosen: dict[str, float]
    values: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        """Over seeds."""
        return mean(self.values[metric])


@dataclass(frozen=True)
class Comparison:
    """One row minus another.

    Attributes:
        first: Title of a row.
        second: Title of another.
        over_seeds: Metric → mean and interval over fits, on the same test pictures.
        over_pictures: Metric → difference and interval over test pictures, for the first seed.
    """

    first: str
    second: str
    over_seeds: dict[str, Interval]
    over_pictures: dict[str, Interval]


@dataclass(frozen=True)
class Results:
    """All that was measured on one data set.

    Attributes:
        material: Its name.
        pictures: Of training, validation and test.
        labels: How many.
        plan: How much work was done.
        rows: The table.
        comparisons: Differences of rows.
        sensitivity: SPA with one of its settings changed, one entry each.
        retrieval: Row title → mAP over queries by their number of labels, as ``retrieval`` has it.
        reliability: Row title → its bins on the test pictures, for the first fit.
    """

    material: str
    pictures: tuple[int, ...]
    labels: int
    plan: Plan
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    sensitivity: tuple[dict[str, Any], ...]
    retrieval: dict[str, dict[str, Any]] = field(default_factory=dict)
    reliability: dict[str, Reliability] = field(default_factory=dict)

    def row(self, title: str) -> Row:
        """The row of this title."""
        return next(row for row in self.rows if row.title == title)

    def comparison(self, first: str, second: str) -> Comparison:
        """The difference of these two rows."""
        return next(c for c in self.comparisons if (c.first, c.second) == (first, second))

    @property
    def near_best(self) -> set[str]:
        """Titles of rows within one point of the best mean average precision."""
        values = {row.title: row.mean("mean_average_precision") for row in self.rows}
        best = max(values.values())
        return {title for title, value in values.items() if value >= best - NEAR}
