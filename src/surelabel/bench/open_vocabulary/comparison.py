"""Run the open-vocabulary comparison and write its Markdown and JSON files."""

import json
from pathlib import Path
from typing import Any

from surelabel.bench.open_vocabulary.costs import measure_costs
from surelabel.bench.open_vocabulary.fitted_rows import fit_and_predict, row_runs
from surelabel.bench.open_vocabulary.page import open_vocabulary_json, open_vocabulary_page
from surelabel.bench.open_vocabulary.plan import (
    METHOD_NAME,
    OTHER_METHODS,
    REFERENCE,
    TABLES,
    OpenVocabularyPlan,
    Progress,
    RunChanges,
    all_run_changes,
)
from surelabel.bench.open_vocabulary.prediction_metrics import (
    evaluate_fitted_predictions,
    perfect_ranking_f1,
)
from surelabel.bench.open_vocabulary.results import OpenVocabularyResults
from surelabel.bench.open_vocabulary.rows import SeedMetrics, measure_seeds, open_vocabulary_row
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.open_vocabulary.vocabulary_change import measure_vocabulary_change
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Run
from surelabel.evaluation import UnseenClassResults
from surelabel.files import atomic_file

TRAIN_SECONDS, ENCODE_SECONDS = 0.007, 0.006  # processor seconds per image, on one core


def distinct_runs(domain: str, plan: OpenVocabularyPlan, seed: int = 0) -> list[Run]:
    """Return the runs of all tables without duplicates.

    Args:
        domain: Domain of the scenes.
        plan: Amount of work.
        seed: First seed.
    """
    runs = [run for changes in all_run_changes() for run in row_runs(domain, changes, plan, seed)]
    return [run for position, run in enumerate(runs) if run not in runs[:position]]


def describe_workload(domain: str, plan: OpenVocabularyPlan) -> str:
    """Return a sentence with the number of recognizers and the expected processor time.

    Args:
        domain: Domain of the scenes.
        plan: Amount of work.
    """
    runs = distinct_runs(domain, plan)
    trained_runs = [run for run in runs if run.method.name == METHOD_NAME]
    train_seconds = sum(run.epochs for run in trained_runs) * plan.train * TRAIN_SECONDS
    n_encoded = len(runs) * (plan.validation + plan.test + plan.train)
    return (
        f"{len(runs)} recognizers, {len(trained_runs)} of them trained on {plan.train:,} images: "
        f"about {(train_seconds + n_encoded * ENCODE_SECONDS) / 60:.0f} minutes on one core. "
        f"An interrupted comparison resumes."
    )


def measure_open_vocabulary(
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    cache: ResultCache,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> OpenVocabularyResults:
    """Measure all tables, the vocabulary change and the costs.

    Args:
        images: Train, validation and test images.
        plan: Amount of work.
        cache: Cache of predictions and metrics, with which an interrupted run resumes.
        seed: First seed.
        progress: Called with the number of finished recognizers and their total.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    metrics_by_runs, total = dict[str, SeedMetrics](), len(distinct_runs(images.domain, plan, seed))

    def measure(changes: RunChanges) -> SeedMetrics:
        """Return the metrics of a row; equal rows of several tables are measured once."""
        runs = row_runs(images.domain, changes, plan, seed)
        if repr(runs) not in metrics_by_runs:
            predictions = [fit_and_predict(cache, images, run) for run in runs]
            metrics_by_runs[repr(runs)] = measure_seeds(predictions, images, plan, cache)
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
    results = evaluate_fitted_predictions(images, reference.predictions[0])
    reference_runs = row_runs(images.domain, reference_changes, plan, seed)
    return OpenVocabularyResults(
        dataset=images.name,
        plan=plan,
        counts=_count_images_and_labels(images, results),
        perfect_ranking=perfect_ranking_f1(results),
        tables=tables,
        vocabulary_change=measure_vocabulary_change(images, reference_runs, plan, cache),
        costs=measure_costs(images, plan, cache),
    )


def write_open_vocabulary_comparison(
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Measure all tables and write ``open-vocabulary.md`` and ``open-vocabulary.json``.

    Args:
        images: Train, validation and test images.
        plan: Amount of work.
        folder: Output folder; its subfolder ``cache`` lets an interrupted comparison resume.
        seed: First seed.
        progress: Called with the number of finished recognizers and their total.

    Returns:
        Content of the Markdown file and of the JSON file.

    Raises:
        DataError: If a file in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cache = ResultCache(folder / "cache")
    results = measure_open_vocabulary(images, plan, cache, seed=seed, progress=progress)
    page, value = open_vocabulary_page(results), open_vocabulary_json(results)
    for name, text in (
        ("open-vocabulary.md", page),
        ("open-vocabulary.json", json.dumps(value, indent=1, allow_nan=False)),
    ):
        with atomic_file(folder / name) as file:
            file.write_text(text, encoding="utf-8")
    return page, value


def _count_images_and_labels(
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
