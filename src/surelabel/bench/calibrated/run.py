"""Measurements of ``surelabel bench calibrated`` on one dataset.

Every head is a linear layer on frozen features. All heads have the same number of candidate
settings. The candidate with the lowest validation log loss of the first readout is selected. With
the selected settings, the head is fitted once for each seed, each time on another 80 % of the
training images, and evaluated on the test images.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.bench.calibrated.differences import calibrated_row_differences
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
from surelabel.bench.calibrated.results import CalibrationResults, CalibrationRow
from surelabel.bench.calibrated.retrieval import measure_calibrated_retrieval
from surelabel.bench.calibrated.rows import calibration_row, calibration_row_metrics
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Choice, Run
from surelabel.links import SPA
from surelabel.metrics import reliability_bins
from surelabel.progress import Progress

SENSITIVITY_METRICS = ("brier_skill", "log_loss", "mean_average_precision", "ace", "ece")


def run_calibrated_measurements(
    dataset: FeatureSplits,
    plan: CalibrationPlan,
    cache: ResultCache,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> CalibrationResults:
    """Measure all rows on one dataset: metrics, differences, sensitivity, retrieval, reliability.

    Args:
        dataset: Features and targets.
        plan: Sizes and settings of the comparison.
        cache: Cache of fitted heads and metrics, from which an interrupted run resumes.
        seed: Seed of the first fit and of the candidate settings.
        progress: Function called with the number of finished steps and the total number of steps.
            A step is one fit or one row of the retrieval table.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    count_step = _calibrated_run_step_counter(progress, plan)
    readouts: dict[str, HeadReadout] = {}
    selected_runs: dict[str, Run] = {}
    for key, head in HEADS.items():
        without_pairs = selected_runs.get(key.removesuffix("-lpr"))
        run = _select_calibrated_run(dataset, head, without_pairs, plan, cache, seed, count_step)
        selected_runs[key] = run
        fits = []
        for fit_seed in range(seed, seed + plan.seeds):
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
        comparisons=calibrated_row_differences(rows, logits, test),
        sensitivity=(
            *_sensitivity_of_calibrated_run(dataset, readouts["SPA"].run, cache, seed, count_step),
            *_pair_weights_of_calibrated_run(dataset, readouts["SPA"].run, cache, seed, count_step),
        ),
        retrieval=_retrieval_of_calibrated_run(readouts, dataset, plan, cache, count_step),
        reliability={
            title: reliability_bins(expit(logits[title]), test.targets, test.known)
            for title in plotted_rows
        },
    )


def _select_calibrated_run(
    dataset: FeatureSplits,
    head: Head,
    selected_without_pairs: Run | None,
    plan: CalibrationPlan,
    cache: ResultCache,
    seed: int,
    count_step: Callable[[], None],
) -> Run:
    """Return the candidate run of a head with the lowest validation log loss."""
    shared, losses = plan.shared_run(round(TRAIN_SHARE * len(dataset.train))), []
    runs = candidate_head_runs(
        head,
        shared,
        count=plan.settings_per_head,
        seed=seed,
        selected_without_pairs=selected_without_pairs,
    )
    for run in runs:
        scores, _ = calibrated_fit_scores(cache, dataset, run, seed=seed)
        losses.append(readout_validation_log_loss(head, scores, dataset.validation))
        count_step()
    return runs[int(np.argmin(losses))]


def _sensitivity_of_calibrated_run(
    dataset: FeatureSplits,
    run: Run,
    cache: ResultCache,
    seed: int,
    count_step: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    """Iterate over the metrics of SPA with one setting changed, for the first fit."""
    for setting, value in (
        (setting, value) for setting, values in SENSITIVITY_SETTINGS.items() for value in values
    ):
        changed_run = replace(run, loss=Choice("spa", {setting: value}))
        _, scores = calibrated_fit_scores(cache, dataset, changed_run, seed=seed)
        logits = SPA(**changed_run.loss.settings).logits(scores)
        metrics = calibration_row_metrics(logits, scores, dataset.test, SENSITIVITY_METRICS)
        yield {"setting": setting, "value": value} | metrics
        count_step()


def _pair_weights_of_calibrated_run(
    dataset: FeatureSplits,
    run: Run,
    cache: ResultCache,
    seed: int,
    count_step: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    """Iterate over the metrics of SPA with each label-pair weight, for the first fit."""
    for weight in PAIR_WEIGHTS:
        run_with_pairs = replace(run, regularizer=Choice("label_pair"), regularizer_weight=weight)
        _, scores = calibrated_fit_scores(cache, dataset, run_with_pairs, seed=seed)
        logits = SPA(**run.loss.settings).logits(scores)
        metrics = calibration_row_metrics(logits, scores, dataset.test, SENSITIVITY_METRICS)
        yield {"setting": "regularizer_weight", "value": weight} | metrics
        count_step()


def _retrieval_of_calibrated_run(
    readouts: Mapping[str, HeadReadout],
    dataset: FeatureSplits,
    plan: CalibrationPlan,
    cache: ResultCache,
    count_step: Callable[[], None],
) -> dict[str, dict[str, Any]]:
    results = {}
    for title in RETRIEVAL_ROWS:
        results[title] = measure_calibrated_retrieval(readouts[title], dataset.test, plan, cache)
        count_step()
    return results


def _best_platt_row_of_calibrated_run(rows: Mapping[str, CalibrationRow]) -> str:
    """Return the title of the row with Platt scaling that has the lowest log loss."""
    titles = [title for title in rows if title.endswith("+ Platt")]
    return min(titles, key=lambda title: rows[title].mean("log_loss"))


def _calibrated_run_step_counter(
    progress: Progress | None, plan: CalibrationPlan
) -> Callable[[], None]:
    """Return a function that reports progress, to call after each fit and each retrieval row."""
    total = len(HEADS) * (plan.settings_per_head + plan.seeds)
    total += sum(len(values) for values in SENSITIVITY_SETTINGS.values())
    total += len(RETRIEVAL_ROWS) + len(PAIR_WEIGHTS)
    numbers = count(1)

    def count_step() -> None:
        number = next(numbers)
        if progress:
            progress(number, total)

    return count_step
