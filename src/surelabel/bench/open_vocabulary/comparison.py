"""Run the open-vocabulary comparison and write its Markdown and JSON files."""

import json
from pathlib import Path
from typing import Any

from surelabel.bench.open_vocabulary.costs import measure_open_vocabulary_costs
from surelabel.bench.open_vocabulary.fitted_rows import (
    predictions_of_fitted_row,
    runs_of_fitted_row,
)
from surelabel.bench.open_vocabulary.page import open_vocabulary_page, open_vocabulary_page_json
from surelabel.bench.open_vocabulary.plan import (
    METHOD_NAME,
    OTHER_METHODS,
    REFERENCE,
    TABLES,
    OpenVocabularyPlan,
    RunChanges,
    open_vocabulary_plan_changes,
)
from surelabel.bench.open_vocabulary.prediction_metrics import (
    evaluate_prediction_metrics,
    prediction_metrics_of_perfect_ranking,
)
from surelabel.bench.open_vocabulary.results import OpenVocabularyResults
from surelabel.bench.open_vocabulary.rows import (
    SeedMetrics,
    measure_open_vocabulary_row_seeds,
    open_vocabulary_row,
)
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.open_vocabulary.vocabulary_change import measure_vocabulary_change
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Run
from surelabel.evaluation import UnseenClassResults
from surelabel.files import atomic_file
from surelabel.progress import Progress

TRAIN_SECONDS, ENCODE_SECONDS = 0.007, 0.006  # processor seconds per image, on one core


def open_vocabulary_comparison_runs(
    domain: str, plan: OpenVocabularyPlan, seed: int = 0
) -> list[Run]:
    """Return the runs of all tables without duplicates.

    Args:
        domain: Domain of the scenes: ``photo``, ``sketch`` or ``night``.
        plan: Sizes and settings of the comparison.
        seed: Seed of the first recognizer of each row. The others use the next seeds.
    """
    runs = [
        run
        for changes in open_vocabulary_plan_changes()
        for run in runs_of_fitted_row(domain, changes, plan, seed)
    ]
    return [run for position, run in enumerate(runs) if run not in runs[:position]]


def open_vocabulary_comparison_workload(domain: str, plan: OpenVocabularyPlan) -> str:
    """Return a sentence with the number of recognizers and the expected processor time.

    Args:
        domain: Domain of the scenes: ``photo``, ``sketch`` or ``night``.
        plan: Sizes and settings of the comparison.
    """
    runs = open_vocabulary_comparison_runs(domain, plan)
    trained_runs = [run for run in runs if run.method.name == METHOD_NAME]
    train_seconds = sum(run.epochs for run in trained_runs) * plan.train * TRAIN_SECONDS
    n_encoded = len(runs) * (plan.validation + plan.test + plan.train)
    return (
        f"{len(runs)} recognizers, {len(trained_runs)} of them trained on {plan.train:,} images: "
        f"about {(train_seconds + n_encoded * ENCODE_SECONDS) / 60:.0f} minutes on one core. "
        "To resume an interrupted comparison, run the command again."
    )


def measure_open_vocabulary_comparison(
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    cache: ResultCache,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> OpenVocabularyResults:
    """Measure the rows of all tables, the effect of added labels, and speed and memory.

    Args:
        images: Train, validation and test images.
        plan: Sizes and settings of the comparison.
        cache: Cache of predictions and metrics, from which an interrupted run resumes.
        seed: Seed of the first recognizer of each row. The others use the next seeds.
        progress: Function called with the number of finished recognizers and their total number.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    metrics_by_runs, total = (
        dict[str, SeedMetrics](),
        len(open_vocabulary_comparison_runs(images.domain, plan, seed)),
    )

    def measure(changes: RunChanges) -> SeedMetrics:
        """Return the metrics of a row; a row that is in several tables is computed only once."""
        runs = runs_of_fitted_row(images.domain, changes, plan, seed)
        if repr(runs) not in metrics_by_runs:
            predictions = [predictions_of_fitted_row(cache, images, run) for run in runs]
            metrics_by_runs[repr(runs)] = measure_open_vocabulary_row_seeds(
                predictions, images, plan, cache
            )
            if progress:
                n_done = sum(len(metrics.predictions) for metrics in metrics_by_runs.values())
                progress(n_done, total)
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
    reference_runs = runs_of_fitted_row(images.domain, reference_changes, plan, seed)
    return OpenVocabularyResults(
        dataset=images.name,
        plan=plan,
        counts=_open_vocabulary_comparison_counts(images, results),
        perfect_ranking=prediction_metrics_of_perfect_ranking(results),
        tables=tables,
        vocabulary_change=measure_vocabulary_change(images, reference_runs, plan, cache),
        costs=measure_open_vocabulary_costs(images, plan, cache),
    )


def write_open_vocabulary_comparison(
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Run the comparison and write ``open-vocabulary.md`` and ``open-vocabulary.json``.

    Args:
        images: Train, validation and test images.
        plan: Sizes and settings of the comparison.
        folder: Output folder. An interrupted comparison resumes from the subfolder ``cache``.
        seed: Seed of the first recognizer of each row. The others use the next seeds.
        progress: Function called with the number of finished recognizers and their total number.

    Returns:
        Content of the Markdown file as a string, and content of the JSON file as a dictionary.

    Raises:
        DataError: If a file in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cache = ResultCache(folder / "cache")
    results = measure_open_vocabulary_comparison(images, plan, cache, seed=seed, progress=progress)
    page, value = open_vocabulary_page(results), open_vocabulary_page_json(results)
    for name, text in (
        ("open-vocabulary.md", page),
        ("open-vocabulary.json", json.dumps(value, indent=1, allow_nan=False)),
    ):
        with atomic_file(folder / name) as file:
            file.write_text(text, encoding="utf-8")
    return page, value


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
