"""Measure the results of the calibration comparison on one dataset.

Every head is a linear layer on frozen features. All heads have the same number of candidate
settings. The candidate with the lowest validation log loss of the first readout is selected. With
the selected settings, the head is fitted once for each seed, each time on another 80 % of the
training images, and evaluated on the test images.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.bench.calibrated.fits import TRAIN_SHARE, calibrated_fit_scores
from surelabel.bench.calibrated.heads import HEADS, PAIR_WEIGHTS, Head, candidate_head_runs
from surelabel.bench.calibrated.plan import (
    PLOTTED_ROWS,
    RETRIEVAL_ROWS,
    SENSITIVITY_SETTINGS,
    CalibrationPlan,
)
from surelabel.bench.calibrated.readouts import (
    HeadReadout,
    head_readouts,
    readout_validation_log_loss,
)
from surelabel.bench.calibrated.retrieval import measure_calibrated_retrieval
from surelabel.bench.calibrated.rows import (
    CalibrationRow,
    RowComparison,
    calibration_row,
    calibration_row_comparisons,
    calibration_row_metrics,
)
from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.config import Choice, Run
from surelabel.links import SPA
from surelabel.metrics import ReliabilityBins, reliability_bins

CalibrationTask = ComparisonTask[FeatureSplits, CalibrationPlan]

SENSITIVITY_METRICS = ("brier_skill", "log_loss", "mean_average_precision", "ace", "ece")
NEAR_BEST = 0.01  # largest difference of a bold row from the best mean average precision


@dataclass(frozen=True)
class CalibrationResults:
    """All measurements of the calibration comparison on one dataset.

    Attributes:
        dataset: Title of the dataset.
        images: Numbers of training, validation and test images.
        labels: Number of labels.
        plan: Sizes and settings of the comparison.
        rows: Rows of the metrics table.
        comparisons: Differences of pairs of rows, with confidence intervals.
        sensitivity: Metrics of SPA with one setting changed, one entry for each changed value.
        retrieval: Retrieval results of `measure_calibrated_retrieval`, by row title.
        reliability: Reliability bins of the first fit on the test images, by row title.
    """

    dataset: str
    images: tuple[int, ...]
    labels: int
    plan: CalibrationPlan
    rows: tuple[CalibrationRow, ...]
    comparisons: tuple[RowComparison, ...]
    sensitivity: tuple[dict[str, Any], ...]
    retrieval: dict[str, dict[str, Any]] = field(default_factory=dict)
    reliability: dict[str, ReliabilityBins] = field(default_factory=dict)

    def row(self, title: str) -> CalibrationRow:
        """Return the row with the given title."""
        return next(row for row in self.rows if row.title == title)

    def comparison(self, first: str, second: str) -> RowComparison:
        """Return the difference between the rows with the given titles."""
        return next(c for c in self.comparisons if (c.first, c.second) == (first, second))

    @property
    def near_best(self) -> set[str]:
        """Return the titles of the rows within one point of the best mean average precision."""
        values = {row.title: row.mean("mean_average_precision") for row in self.rows}
        best = max(values.values())
        return {title for title, value in values.items() if value >= best - NEAR_BEST}


def measure_calibration_results(task: CalibrationTask) -> CalibrationResults:
    """Measure all rows on one dataset: metrics, differences, sensitivity, retrieval, reliability.

    Args:
        task: Features, plan, cache and seed. A step of the progress is one fit or one row of the
            retrieval table.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    dataset, plan, cache = task.dataset, task.plan, task.cache
    count_step = task.step_counter(_number_of_calibrated_run_steps(plan))
    readouts: dict[str, HeadReadout] = {}
    selected_runs: dict[str, Run] = {}
    for key, head in HEADS.items():
        without_pairs = selected_runs.get(key.removesuffix("-lpr"))
        run = _select_calibrated_run(task, head, without_pairs, count_step)
        selected_runs[key] = run
        fits = []
        for fit_seed in task.seeds(plan.seeds):
            fits.append(calibrated_fit_scores(cache, dataset, run, seed=fit_seed))
            count_step()
        readouts |= {
            readout.title: readout
            for readout in head_readouts(key, head, run, fits, dataset.validation)
        }
    rows = {title: calibration_row(readout, dataset, cache) for title, readout in readouts.items()}
    test = dataset.test
    logits = {title: readout.logits[0] for title, readout in readouts.items()}
    plotted_rows = (*PLOTTED_ROWS, _best_platt_row_of_calibrated_run(rows))
    return CalibrationResults(
        dataset=dataset.name,
        images=tuple(len(split) for split in (dataset.train, dataset.validation, test)),
        labels=len(test.names),
        plan=plan,
        rows=tuple(rows.values()),
        comparisons=calibration_row_comparisons(rows, logits, test),
        sensitivity=tuple(_sensitivity_of_calibrated_run(task, readouts["SPA"].run, count_step)),
        retrieval=_retrieval_of_calibrated_run(task, readouts, count_step),
        reliability={
            title: reliability_bins(expit(logits[title]), test.targets, test.known)
            for title in plotted_rows
        },
    )


def _number_of_calibrated_run_steps(plan: CalibrationPlan) -> int:
    """Return the number of progress steps: fits, and rows of the retrieval table."""
    n_fits = len(HEADS) * (plan.settings_per_head + plan.seeds)
    n_sensitivity_fits = sum(map(len, SENSITIVITY_SETTINGS.values())) + len(PAIR_WEIGHTS)
    return n_fits + n_sensitivity_fits + len(RETRIEVAL_ROWS)


def _select_calibrated_run(
    task: CalibrationTask,
    head: Head,
    selected_without_pairs: Run | None,
    count_step: Callable[[], None],
) -> Run:
    """Return the candidate run of a head with the lowest validation log loss."""
    dataset, losses = task.dataset, []
    runs = candidate_head_runs(
        head,
        task.plan.shared_run(round(TRAIN_SHARE * len(dataset.train))),
        count=task.plan.settings_per_head,
        seed=task.seed,
        selected_without_pairs=selected_without_pairs,
    )
    for run in runs:
        scores, _ = calibrated_fit_scores(task.cache, dataset, run, seed=task.seed)
        losses.append(readout_validation_log_loss(head, scores, dataset.validation))
        count_step()
    return runs[int(np.argmin(losses))]


def _sensitivity_of_calibrated_run(
    task: CalibrationTask, run: Run, count_step: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """Iterate over the metrics of SPA with one setting changed, for the first fit."""
    for setting, value, changed_run in _changed_calibrated_runs(run):
        _, scores = calibrated_fit_scores(task.cache, task.dataset, changed_run, seed=task.seed)
        logits = SPA(**changed_run.loss.settings).logits(scores)
        metrics = calibration_row_metrics(logits, scores, task.dataset.test, SENSITIVITY_METRICS)
        yield {"setting": setting, "value": value} | metrics
        count_step()


def _changed_calibrated_runs(run: Run) -> Iterator[tuple[str, float, Run]]:
    """Yield the name and the value of each changed setting or weight, and the changed run."""
    for setting, values in SENSITIVITY_SETTINGS.items():
        for value in values:
            yield setting, value, replace(run, loss=Choice("spa", {setting: value}))
    for weight in PAIR_WEIGHTS:
        run_with_pairs = replace(run, regularizer=Choice("label_pair"), regularizer_weight=weight)
        yield "regularizer_weight", weight, run_with_pairs


def _retrieval_of_calibrated_run(
    task: CalibrationTask, readouts: Mapping[str, HeadReadout], count_step: Callable[[], None]
) -> dict[str, dict[str, Any]]:
    results = {}
    for title in RETRIEVAL_ROWS:
        results[title] = measure_calibrated_retrieval(
            readouts[title], task.dataset.test, task.plan, task.cache
        )
        count_step()
    return results


def _best_platt_row_of_calibrated_run(rows: Mapping[str, CalibrationRow]) -> str:
    """Return the title of the row with Platt scaling that has the lowest log loss."""
    titles = [title for title in rows if title.endswith("+ Platt")]
    return min(titles, key=lambda title: rows[title].mean("log_loss"))
