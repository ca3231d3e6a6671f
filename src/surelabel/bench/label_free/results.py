"""Data class of the results of the label-free comparison."""

from dataclasses import dataclass
from typing import Any

from surelabel.bench.label_free.plan import LabelFreePlan
from surelabel.bench.label_free.rows import LabelFreeRow
from surelabel.bench.label_free.students import StudentVariant


@dataclass(frozen=True)
class LabelFreeResults:
    """All measurements of the label-free comparison on one image collection.

    Attributes:
        dataset: Title of the image collection.
        labels: Number of labels.
        plan: Sizes and settings of the comparison.
        best_one_pass: Title of the reference row of all gains, the best row with one encoder pass.
        rows: Rows of the tables.
        stages: Metrics of the pseudo-labels by stage, from `measure_pseudolabel_stages`.
        variants: Measurements of the student variants.
    """

    dataset: str
    labels: int
    plan: LabelFreePlan
    best_one_pass: str
    rows: tuple[LabelFreeRow, ...]
    stages: tuple[dict[str, Any], ...]
    variants: tuple[StudentVariant, ...]

    def row(self, title: str) -> LabelFreeRow:
        """Return the row with the given title."""
        return next(row for row in self.rows if row.title == title)

    @property
    def best_untrained(self) -> LabelFreeRow:
        """Row with the best mean average precision among methods that are not trained."""
        trained = ("cut and sew", "linear probe, all labels")
        rows = [row for row in self.rows if row.title not in trained]
        return max(rows, key=lambda row: row.mean("mean_average_precision"))
