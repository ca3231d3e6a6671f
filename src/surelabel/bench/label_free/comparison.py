"""Run the label-free comparison and write its Markdown and JSON files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.bench.label_free.method_scores import MethodScores, label_free_method_scores
from surelabel.bench.label_free.page import label_free_page, label_free_page_json
from surelabel.bench.label_free.plan import LabelFreePlan
from surelabel.bench.label_free.pseudolabel_stages import measure_pseudolabel_stages
from surelabel.bench.label_free.results import LabelFreeResults
from surelabel.bench.label_free.rows import (
    best_one_pass_label_free_row,
    label_free_row,
    label_free_row_runs,
)
from surelabel.bench.label_free.scene_splits import LabelFreeSplits
from surelabel.bench.label_free.students import measure_student_variants
from surelabel.bench.result_cache import ResultCache
from surelabel.files import atomic_file
from surelabel.progress import Progress


def measure_label_free_comparison(
    images: LabelFreeSplits,
    plan: LabelFreePlan,
    cache: ResultCache,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> LabelFreeResults:
    """Measure all methods, pseudo-label stages and student variants on one image collection.

    Args:
        images: Train, validation and test images.
        plan: Sizes and settings of the comparison.
        cache: Cache of scores and metrics, from which an interrupted run resumes.
        seed: Seed of the recognizers. Rows with several seeds use consecutive seeds from this one.
        progress: Function called with the number of finished recognizers and the total number of
            recognizers, first for the table rows, then for the student variants.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    runs = label_free_row_runs(images, plan, seed)
    total = sum(len(runs_of_row) for runs_of_row in runs.values())
    scores: dict[str, list[MethodScores]] = {}
    for title, runs_of_row in runs.items():
        scores[title] = []
        for run in runs_of_row:
            is_student = run.method.name == "tailor"
            n_unlabelled = plan.student_images if is_student else plan.unlabelled
            scores[title].append(label_free_method_scores(cache, images, run, n_unlabelled))
            if progress:
                progress(sum(len(scores_of_row) for scores_of_row in scores.values()), total)
    best = best_one_pass_label_free_row(scores, images)
    reference = (best, scores[best][0].test)
    return LabelFreeResults(
        dataset=images.name,
        labels=len(images.test.names),
        plan=plan,
        best_one_pass=best,
        rows=tuple(
            label_free_row(title, scores_of_row, reference, images, cache)
            for title, scores_of_row in scores.items()
        ),
        stages=tuple(measure_pseudolabel_stages(images, plan, cache)),
        variants=tuple(measure_student_variants(images, plan, cache, seed=seed, progress=progress)),
    )


def write_label_free_comparison(
    collections: Sequence[LabelFreeSplits],
    plan: LabelFreePlan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Run the comparison and write ``label-free.md`` and ``label-free.json``.

    Args:
        collections: One or more image collections, each with train, validation and test images.
        plan: Sizes and settings of the comparison.
        folder: Output folder. An interrupted comparison resumes from the subfolder ``cache``.
        seed: Seed of the recognizers. Rows with several seeds use consecutive seeds from this one.
        progress: Function called with the number of finished recognizers and the total number of
            recognizers of the current collection.

    Returns:
        Content of the Markdown file as a string, and content of the JSON file as a dictionary.

    Raises:
        DataError: If a file in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cache = ResultCache(folder / "cache")
    results = [
        measure_label_free_comparison(images, plan, cache, seed=seed, progress=progress)
        for images in collections
    ]
    page = "\n".join(map(label_free_page, results))
    value = {"results": [label_free_page_json(result) for result in results]}
    for name, text in (
        ("label-free.md", page),
        ("label-free.json", json.dumps(value, indent=1, allow_nan=False)),
    ):
        with atomic_file(folder / name) as file:
            file.write_text(text, encoding="utf-8")
    return page, value
