"""What a comparison found."""

from dataclasses import dataclass
from typing import Any

from surelabel.bench.open_vocabulary.plan import BESIDE, REFERENCE, Plan
from surelabel.bench.open_vocabulary.rows import Row


@dataclass(frozen=True)
class Results:
    """All that was measured.

    Attributes:
        pictures: Their name.
        plan: How much work was planned.
        counts: Pictures of each part, pictures removed, and those that each protocol counts.
        ceilings: Metric → what a perfect ranking reaches.
        tables: Heading → rows.
        exchange: Other names beside the old ones, as ``exchanged`` has them.
        costs: As ``costs`` has them.
    """

    pictures: str
    plan: Plan
    counts: dict[str, int]
    ceilings: dict[str, float]
    tables: dict[str, tuple[Row, ...]]
    exchange: list[dict[str, Any]]
    costs: list[dict[str, Any]]

    @property
    def reference(self) -> Row:
        """What all others are held against."""
        return self.row(BESIDE, REFERENCE)

    def row(self, heading: str, title: str) -> Row:
        """The row of this title."""
        return next(row for row in self.tables[heading] if row.title == title)
