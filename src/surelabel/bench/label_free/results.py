"""What a comparison found."""

from dataclasses import dataclass
from typing import Any

from surelabel.bench.label_free.plan import Plan
from surelabel.bench.label_free.rows import Row
from surelabel.bench.label_free.students import Variant


@dataclass(frozen=True)
class Results:
    """All that was measured on one archive.

    Attributes:
        pictures: Its name.
        labels: How many.
        plan: How much work was done.
        best: Title of the one-pass row that the others are held against.
        rows: The table.
        stages: Of pseudo-labels, as ``stages`` has them.
        variants: Of the student.
    """

    pictures: str
    labels: int
    plan: Plan
    best: str
    rows: tuple[Row, ...]
    stages: tuple[dict[str, Any], ...]
    variants: tuple[Variant, ...]

    def row(self, title: str) -> Row:
        """The row of this title."""
        return next(row for row in self.rows if row.title == title)

    @property
    def best_untrained(self) -> Row:
        """The row that ranks best of those without labels and without gradients."""
        left_out = ("cut and sew", "linear probe, all labels")
        rows = [row for row in self.rows if row.title not in left_out]
        return max(rows, key=lambda row: row.mean("mean_average_precision"))
