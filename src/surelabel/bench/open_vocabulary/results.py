"""Data class of the results of the open-vocabulary comparison."""

from dataclasses import dataclass
from typing import Any

from surelabel.bench.open_vocabulary.plan import OTHER_METHODS, REFERENCE, OpenVocabularyPlan
from surelabel.bench.open_vocabulary.rows import OpenVocabularyRow


@dataclass(frozen=True)
class OpenVocabularyResults:
    """All measurements of the open-vocabulary comparison.

    Attributes:
        dataset: Title of the dataset.
        plan: Sizes and settings of the comparison.
        counts: Numbers of images and of classes, by name, such as ``train`` or ``unseen``.
        perfect_ranking: F1 of a perfect ranking, by metric name, such as ``zsl_f1_at_3``.
        tables: Rows of each table, by heading.
        vocabulary_change: Effect of added labels, from `measure_vocabulary_change`.
        costs: Speed and memory, from `measure_open_vocabulary_costs`.
    """

    dataset: str
    plan: OpenVocabularyPlan
    counts: dict[str, int]
    perfect_ranking: dict[str, float]
    tables: dict[str, tuple[OpenVocabularyRow, ...]]
    vocabulary_change: list[dict[str, Any]]
    costs: list[dict[str, Any]]

    @property
    def reference(self) -> OpenVocabularyRow:
        """Reference row, with which all other rows are compared."""
        return self.row(OTHER_METHODS, REFERENCE)

    def row(self, heading: str, title: str) -> OpenVocabularyRow:
        """Return the row with the given title in the table with the given heading."""
        return next(row for row in self.tables[heading] if row.title == title)
