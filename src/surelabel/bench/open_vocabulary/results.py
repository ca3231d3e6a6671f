"""Measure the results of the open-vocabulary comparison."""

from dataclasses import dataclass
from typing import Any

from surelabel.bench.open_vocabulary.costs import measure_open_vocabulary_costs
from surelabel.bench.open_vocabulary.fitted_rows import (
    FittedPredictions,
    predictions_of_fitted_row,
    runs_of_all_fitted_rows,
    runs_of_fitted_row,
)
from surelabel.bench.open_vocabulary.plan import (
    OTHER_METHODS,
    REFERENCE,
    TABLES,
    OpenVocabularyPlan,
    RunChanges,
)
from surelabel.bench.open_vocabulary.prediction_metrics import (
    evaluate_prediction_metrics,
    prediction_metrics_of_perfect_ranking,
)
from surelabel.bench.open_vocabulary.rows import (
    OpenVocabularyRow,
    SeedMetrics,
    measure_open_vocabulary_row_seeds,
    open_vocabulary_row,
)
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits, OpenVocabularyTask
from surelabel.bench.open_vocabulary.vocabulary_change import measure_vocabulary_change
from surelabel.config import Run
from surelabel.evaluation import UnseenClassResults


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
        """Return the reference row, with which all other rows are compared."""
        return self.row(OTHER_METHODS, REFERENCE)

    def row(self, heading: str, title: str) -> OpenVocabularyRow:
        """Return the row with the given title in the table with the given heading."""
        return next(row for row in self.tables[heading] if row.title == title)


def measure_open_vocabulary_results(
    task: OpenVocabularyTask,
) -> OpenVocabularyResults:
    """Measure the rows of all tables, the effect of added labels, and speed and memory.

    Args:
        task: Images, plan, cache and seed. A step of the progress is one recognizer.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan, cache = task.dataset, task.plan, task.cache
    n_runs = len(runs_of_all_fitted_rows(images.domain, plan, task.seed))
    count_step, metrics_by_runs = task.step_counter(n_runs), dict[str, SeedMetrics]()

    def predict(run: Run) -> FittedPredictions:
        predictions = predictions_of_fitted_row(cache, images, run)
        count_step()
        return predictions

    def measure(changes: RunChanges) -> SeedMetrics:
        """Return the metrics of a row, which are computed once for a row in several tables."""
        runs = runs_of_fitted_row(images.domain, changes, plan, task.seed)
        if repr(runs) not in metrics_by_runs:
            metrics_by_runs[repr(runs)] = measure_open_vocabulary_row_seeds(
                [predict(run) for run in runs], task
            )
        return metrics_by_runs[repr(runs)]

    reference_changes = TABLES[OTHER_METHODS][REFERENCE]
    reference = measure(reference_changes)
    tables = {
        heading: tuple(
            open_vocabulary_row(title, measure(changes), reference)
            for title, changes in rows.items()
        )
        for heading, rows in TABLES.items()
    }
    results = evaluate_prediction_metrics(images, reference.predictions[0])
    reference_runs = runs_of_fitted_row(images.domain, reference_changes, plan, task.seed)
    return OpenVocabularyResults(
        dataset=images.name,
        plan=plan,
        counts=_open_vocabulary_comparison_counts(images, results),
        perfect_ranking=prediction_metrics_of_perfect_ranking(results),
        tables=tables,
        vocabulary_change=measure_vocabulary_change(reference_runs, task),
        costs=measure_open_vocabulary_costs(task),
    )


def _open_vocabulary_comparison_counts(
    images: OpenVocabularySplits, results: UnseenClassResults
) -> dict[str, int]:
    return {
        "train": len(images.train),
        "removed": images.removed,
        "validation": len(images.validation),
        "test": len(images.test),
        "seen": len(images.vocabulary.seen),
        "unseen": len(images.vocabulary.unseen),
        "zsl": results.zsl.images,
        "gzsl": results.gzsl.images,
        "zsl_labels_without_positives": results.zsl.labels_without_positives,
        "gzsl_labels_without_positives": results.gzsl.labels_without_positives,
    }
