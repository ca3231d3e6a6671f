"""Measure the results of the label-free comparison on one image collection."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from typing import Any

from surelabel.bench.label_free.method_scores import MethodScores, label_free_method_scores
from surelabel.bench.label_free.plan import LabelFreePlan
from surelabel.bench.label_free.pseudolabel_stages import measure_pseudolabel_stages
from surelabel.bench.label_free.rows import (
    LabelFreeRow,
    best_one_pass_label_free_row,
    label_free_row,
    label_free_row_runs,
)
from surelabel.bench.label_free.scene_splits import LabelFreeTask
from surelabel.bench.label_free.students import StudentVariant, measure_student_variants
from surelabel.config import Run


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
    def has_main_objects(self) -> bool:
        """Return whether the main object of the test images is known."""
        return not isnan(self.rows[0].mean("recall_of_main"))

    @property
    def best_untrained(self) -> LabelFreeRow:
        """Return the row with the best mean average precision among untrained methods."""
        trained = ("cut and sew", "linear probe, all labels")
        rows = [row for row in self.rows if row.title not in trained]
        return max(rows, key=lambda row: row.mean("mean_average_precision"))


def measure_label_free_results(
    task: LabelFreeTask,
) -> LabelFreeResults:
    """Measure all methods, pseudo-label stages and student variants on one image collection.

    Args:
        task: Images, plan, cache and seed. A step of the progress is one recognizer, first of the
            table rows, then of the student variants.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan, cache = task.dataset, task.plan, task.cache
    runs = label_free_row_runs(images, plan, task.seed)
    count_step = task.step_counter(sum(map(len, runs.values())))
    scores = {
        title: [_label_free_scores_of_run(task, run, count_step) for run in runs_of_row]
        for title, runs_of_row in runs.items()
    }
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
        stages=tuple(measure_pseudolabel_stages(task)),
        variants=tuple(measure_student_variants(task)),
    )


def _label_free_scores_of_run(
    task: LabelFreeTask, run: Run, count_step: Callable[[], None]
) -> MethodScores:
    is_student = run.method.name == "tailor"
    n_unlabelled = task.plan.student_images if is_student else task.plan.unlabelled
    scores = label_free_method_scores(task.cache, task.dataset, run, n_unlabelled)
    count_step()
    return scores
