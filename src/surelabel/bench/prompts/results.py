"""Measure the results of the comparison of prompt tuning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.base_new_metrics import base_new_test_and_groups, cached_base_new_metrics
from surelabel.bench.base_new_predictions import (
    BaseNewFit,
    BaseNewPredictions,
    predict_base_and_new,
    time_base_new_fit,
)
from surelabel.bench.base_new_splits import OPEN_VOCABULARY_SPLIT, BaseNewSplits
from surelabel.bench.class_group_metrics import (
    NEW,
    covariance_errors,
)
from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.prompts.plan import (
    CCR,
    DAC,
    NONE,
    ZERO_SHOT,
    PromptPlan,
    PromptSetting,
    epochs_within_time,
    tuner_learns_prompts,
)
from surelabel.bench.resampling import bench_resampling_difference_intervals
from surelabel.bench.result_cache import ResultCache
from surelabel.bench.rows import ComparisonRow, RowDifference, metrics_by_seed, row_differences
from surelabel.data import align_to_vocabulary, describe_shots
from surelabel.records import LabelledImages, LabelledTexts

PromptTask = ComparisonTask[BaseNewSplits, PromptPlan]
COVARIANCE_GROUPS = ("head", "medium", "tail", NEW)
CURVE, WEIGHTS, OPEN_VOCABULARY = "curve", "weights", "48/17"  # other tables have the key of a loss


@dataclass(frozen=True)
class PromptRow(ComparisonRow):
    """One row of the tables of the comparison of prompt tuning.

    Keys of metrics consist of the readout, the group of labels or the mean, and the metric, such as
    ``raw_new_ece`` or ``calibrated_arithmetic_ece``. In other domains, the domain follows the
    readout, as in ``raw_night_new_ece``.

    Attributes:
        setting: Settings of the row.
        variant: Variant of the settings, or ``DAC``.
        parameters: Number of trained parameters.
        differences: Difference from the row with the same settings and variant ``none``, by metric.
            For variant ``none``, the dictionary is empty.
        zero_shot_differences: Difference from zero-shot, by metric. The dictionary is empty for
            zero-shot and for variants other than ``none``.
    """

    setting: PromptSetting
    variant: str
    parameters: int
    differences: dict[str, RowDifference]
    zero_shot_differences: dict[str, RowDifference]


@dataclass(frozen=True)
class PromptResults:
    """All measurements of the comparison of prompt tuning on one dataset.

    Attributes:
        dataset: Title of the dataset.
        plan: Sizes and settings of the comparison, with the number of epochs of each tuner.
        costs: Values of ``time_base_new_fit`` by tuner and variant.
        sample: Sentences about the few-shot sample of the first seed.
        shot_counts: Sizes of the few-shot samples of the first seed: ``shots``, ``images``, and
            ``least``, ``median`` and ``most`` positive images per base label.
        tables: Rows of each table, by loss or by name of the table.
        covariance: Labels with their groups, sorted by group, and the results of
            ``covariance_errors`` by variant, for the first fit of the studied tuner.
    """

    dataset: str
    plan: PromptPlan
    costs: dict[str, dict[str, dict[str, float]]]
    sample: list[str]
    shot_counts: list[dict[str, float]]
    tables: dict[str, tuple[PromptRow, ...]]
    covariance: dict[str, Any]


@dataclass(frozen=True)
class _SeedValues:
    """Values of fits that differ only in their seed.

    Attributes:
        metrics: Values of each metric, one for each seed.
        resampled: Mean of each compared metric over seeds, on each resample of the test images.
        first: Predictions of the first seed.
    """

    metrics: dict[str, list[float]]
    resampled: dict[str, Array]
    first: BaseNewPredictions


def plan_with_epochs(
    images: Sequence[BaseNewSplits], plan: PromptPlan, cache: ResultCache, seed: int = 0
) -> PromptPlan:
    """Return the plan with the numbers of epochs that its time limit allows.

    The limit and the times of fits of each tuner and variant determine these numbers; see
    ``epochs_within_time``.

    Args:
        images: All datasets of the comparison.
        plan: Sizes and settings of the comparison.
        cache: Cache of the times, so that a resumed comparison has the same epochs.
        seed: Seed of the first fit.
    """
    of_datasets = [prompt_fit_costs(dataset, plan, cache) for dataset in images]
    costs = {
        tuner: {
            variant: {name: sum(c[tuner][variant][name] for c in of_datasets) for name in cost}
            for variant, cost in variants.items()
        }
        for tuner, variants in of_datasets[0].items()
    }
    samples = dict[tuple[object, ...], LabelledImages | LabelledTexts]()
    steps = dict[PromptSetting, int]()
    for setting in plan.trained_settings():
        fit = plan.fit_of(setting, images[0], seed)
        sample = (type(fit), fit.learns_from, fit.split, fit.shots)
        if sample not in samples:
            samples[sample] = fit.training_data(images[0])
        steps[setting] = fit.steps_per_epoch(samples[sample])
    return replace(plan, epochs=epochs_within_time(plan, steps, costs))


def prompt_fit_costs(
    images: BaseNewSplits, plan: PromptPlan, cache: ResultCache
) -> dict[str, dict[str, dict[str, float]]]:
    """Return the values of ``time_base_new_fit`` by tuner and variant, from the cache if stored."""
    plan = replace(plan, epochs={})
    costs = dict[str, dict[str, dict[str, float]]]()
    for setting in plan.main_settings("binary"):
        of_tuner = costs.setdefault(setting.tuner, {})
        if setting.variant not in of_tuner:
            of_tuner[setting.variant] = _cached_cost(images, plan, cache, setting)
    return costs


def measure_prompt_results(task: PromptTask) -> PromptResults:
    """Measure all rows on one dataset.

    Args:
        task: Images, plan, cache and seed. A step of the progress is one fit.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan, cache = task.dataset, task.plan, task.cache
    n_fits = sum(plan.seeds(setting.tuner) for setting in plan.trained_settings())
    count_step, memory = task.step_counter(n_fits), dict[tuple[PromptSetting, bool], _SeedValues]()

    def values(setting: PromptSetting, dac: bool = False) -> _SeedValues:
        if (setting, dac) not in memory:
            is_new = not dac and setting.tuner != ZERO_SHOT
            report = count_step if is_new else (lambda: None)
            memory[setting, dac] = _measure_seeds(task, setting, dac, report)
        return memory[setting, dac]

    def row(setting: PromptSetting, title: str = "", dac: bool = False) -> PromptRow:
        measured = values(setting, dac)
        is_reference = setting == setting.reference and not dac
        zero_shot = PromptSetting(ZERO_SHOT, split=setting.split)
        is_fit_without_variant = is_reference and setting.tuner != ZERO_SHOT
        return PromptRow(
            title=title or setting.title.replace(NONE, DAC if dac else NONE),
            metrics=measured.metrics,
            setting=setting,
            variant=DAC if dac else setting.variant,
            parameters=measured.first.parameters,
            differences={} if is_reference else _differences(measured, values(setting.reference)),
            zero_shot_differences=_differences(measured, values(zero_shot))
            if is_fit_without_variant
            else {},
        )

    tables = {}
    for loss in plan.losses:
        rows = [row(PromptSetting(ZERO_SHOT))]
        for setting in plan.main_settings(loss):
            rows.append(row(setting))
            if setting.variant == NONE and tuner_learns_prompts(setting.tuner):
                rows.append(row(setting, dac=True))
        tables[loss] = tuple(rows)
    tables[CURVE] = tuple(
        row(setting, f"{setting.shots} shots, {setting.variant}")
        for setting in plan.curve_settings()
    )
    tables[WEIGHTS] = tuple(
        _with_epoch_seconds(row(setting, _weight_title(setting)), task)
        for size in plan.batch_sizes
        for setting in plan.weight_settings(size)
    )
    open_vocabulary_settings = list(plan.open_vocabulary_settings())
    if open_vocabulary_settings:
        open_vocabulary_settings.insert(0, PromptSetting(ZERO_SHOT, split=OPEN_VOCABULARY_SPLIT))
    tables[OPEN_VOCABULARY] = tuple(map(row, open_vocabulary_settings))
    studied = {s.variant: values(s).first for s in plan.domain_settings()}
    return PromptResults(
        dataset=images.name,
        plan=plan,
        costs=prompt_fit_costs(images, plan, cache),
        sample=_sample_description(task),
        shot_counts=[_shot_counts(task, shots) for shots in plan.curve_shots],
        tables=tables,
        covariance=_covariance_errors(task, studied),
    )


def _measure_seeds(
    task: PromptTask, setting: PromptSetting, dac: bool, report: Callable[[], None]
) -> _SeedValues:
    """Fit all seeds of a row, and return their metrics; ``report`` is called after each fit."""
    seed_metrics, seed_resampled, all_predictions = [], [], []
    for seed in task.seeds(task.plan.seeds(setting.tuner)):
        fit = task.plan.fit_of(setting, task.dataset, seed)
        predictions = predict_base_and_new(task.cache, task.dataset, fit)
        metrics, resampled = cached_base_new_metrics(
            task.cache, task.dataset, fit, predictions, resamples=task.plan.resamples, dac=dac
        )
        seed_metrics.append(metrics)
        seed_resampled.append(resampled)
        all_predictions.append(predictions)
        report()
    means = {
        name: np.mean([resampled[name] for resampled in seed_resampled], axis=0)
        for name in seed_resampled[0]
    }
    return _SeedValues(metrics_by_seed(seed_metrics), means, all_predictions[0])


def _differences(measured: _SeedValues, reference: _SeedValues) -> dict[str, RowDifference]:
    intervals = bench_resampling_difference_intervals(measured.resampled, reference.resampled)
    return row_differences(measured.metrics, reference.metrics, intervals)


def _covariance_errors(
    task: PromptTask, predictions: Mapping[str, BaseNewPredictions]
) -> dict[str, Any]:
    """Return labels, groups and, by variant, the results of ``covariance_errors``."""
    test, groups = base_new_test_and_groups(task.dataset, _first_fit(task, NONE))
    columns = np.concatenate([groups[name] for name in COVARIANCE_GROUPS])
    errors: dict[str, Any] = {
        "labels": [test.names[column] for column in columns],
        "groups": [name for name in COVARIANCE_GROUPS for _ in groups[name]],
    }
    for variant, of_variant in predictions.items():
        difference = covariance_errors(of_variant.test, of_variant.texts.zero_shot, test)
        errors[variant] = difference[columns][:, columns].round(4).tolist()
    return errors


def _cached_cost(
    images: BaseNewSplits, plan: PromptPlan, cache: ResultCache, setting: PromptSetting
) -> dict[str, float]:
    fit = plan.fit_of(setting, images, seed=0)
    cost: dict[str, float] = cache.load_or_compute(
        "cost", images.fingerprint, fit, compute=partial(time_base_new_fit, images, fit)
    )
    return cost


def _with_epoch_seconds(row: PromptRow, task: PromptTask) -> PromptRow:
    """Return the row with the metric ``epoch_seconds``, the processor time of one epoch."""
    plan = replace(task.plan, epochs={})
    cost = _cached_cost(task.dataset, plan, task.cache, row.setting)
    fit = task.plan.fit_of(row.setting, task.dataset, task.seed)
    seconds = cost["step_seconds"] * fit.steps_per_epoch(fit.training_data(task.dataset))
    return replace(row, metrics=row.metrics | {"epoch_seconds": [seconds]})


def _first_fit(task: PromptTask, variant: str, shots: int | None = None) -> BaseNewFit:
    """Return the first fit of the studied tuner."""
    plan = task.plan
    setting = PromptSetting(plan.studied_tuner, variant=variant, shots=shots or plan.shots)
    return plan.fit_of(setting, task.dataset, task.seed)


def _sample_description(task: PromptTask) -> list[str]:
    """Return sentences about the few-shot sample of the first seed."""
    fit = _first_fit(task, NONE)
    labels = fit.vocabulary(task.dataset).seen
    train, _ = align_to_vocabulary(task.dataset.train, labels)
    sample = fit.training_data(task.dataset)
    assert isinstance(sample, LabelledImages)  # the studied tuner learns from images
    row_of = {path: row for row, path in enumerate(train.paths)}
    rows = np.array([row_of[path] for path in sample.paths])
    return describe_shots(labels, train.targets, train.known, rows, fit.shots)


def _shot_counts(task: PromptTask, shots: int) -> dict[str, float]:
    """Return the size of a few-shot sample and its positive images per base label."""
    sample = _first_fit(task, NONE, shots).training_data(task.dataset)
    counts = (sample.targets * sample.known).sum(axis=0)
    return {
        "shots": shots,
        "images": len(sample),
        "least": float(counts.min()),
        "median": float(np.median(counts)),
        "most": float(counts.max()),
    }


def _weight_title(setting: PromptSetting) -> str:
    weight = setting.weight if setting.variant == CCR else 0
    return f"λ = {weight:g}, {setting.batch_size} images per step"
