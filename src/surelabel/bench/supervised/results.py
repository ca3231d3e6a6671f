"""Measure the results of the supervised comparison with one encoder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.compatible_methods import compatible_methods
from surelabel.bench.image_splits import EncoderImageSplits
from surelabel.bench.linear_before_centring import choice_of_bench_method
from surelabel.bench.resampling import bench_resampling_difference_intervals
from surelabel.bench.rows import ComparisonRow, RowDifference, metrics_by_seed, row_differences
from surelabel.bench.supervised.fits import (
    SupervisedPredictions,
    calibrate_label_free_scores,
    predict_supervised_test,
    score_without_labels,
)
from surelabel.bench.supervised.label_demand import LabelDemand, labels_needed
from surelabel.bench.supervised.metrics import MAP, supervised_metrics
from surelabel.bench.supervised.plan import (
    CALIBRATOR,
    LABEL_FREE_METHODS,
    MAP_LEVELS,
    STUDIED_METHODS,
    TRAINED_REFERENCES,
    SupervisedPlan,
)
from surelabel.bench.supervised.scene_splits import SupervisedTask
from surelabel.config import Choice, Run
from surelabel.metrics import ConfidenceInterval, paired_t_interval


@dataclass(frozen=True)
class SupervisedRow(ComparisonRow):
    """One row of the metrics table: a method with a number of labelled images.

    Attributes:
        method: Key of the method.
        n_images: Number of labelled images.
    """

    method: str
    n_images: int

    def interval(self, metric: str) -> ConfidenceInterval:
        """Return the mean of a metric with its 95 % interval over seeds, NaN for one seed."""
        return paired_t_interval(self.metrics[metric])


@dataclass(frozen=True)
class SupervisedDifference:
    """Differences of a method from another method with the same labelled images.

    Attributes:
        method: Key of the method.
        reference: Key of the other method.
        is_best_label_free: Whether the other method has the highest mAP of all label-free
            methods.
        n_images: Number of labelled images.
        metrics: Difference in each compared metric.
    """

    method: str
    reference: str
    is_best_label_free: bool
    n_images: int
    metrics: dict[str, RowDifference]


@dataclass(frozen=True)
class SupervisedResults:
    """All measurements of the supervised comparison with one encoder.

    Attributes:
        dataset: Title of the dataset.
        images: Numbers of training images, from which labelled images are sampled, and of test
            images.
        labels: Number of labels.
        plan: Sizes and settings of the comparison.
        rows: Rows of the metrics table, sorted by the number of labelled images.
        differences: Differences of each method of ``STUDIED_METHODS`` from each method of
            ``TRAINED_REFERENCES`` and from the best label-free method.
        demands: Number of labelled images needed for each mAP of ``MAP_LEVELS``, by method.
        left_out: Reasons why methods are left out, by method.
    """

    dataset: str
    images: tuple[int, int]
    labels: int
    plan: SupervisedPlan
    rows: tuple[SupervisedRow, ...]
    differences: tuple[SupervisedDifference, ...]
    demands: dict[str, tuple[LabelDemand, ...]]
    left_out: dict[str, str] = field(default_factory=dict)

    def rows_of_method(self, method: str) -> list[SupervisedRow]:
        """Return the rows of a method, sorted by the number of labelled images."""
        return [row for row in self.rows if row.method == method]


@dataclass(frozen=True)
class _MeasuredRow:
    """A row, and its compared metrics on resamples of the test images.

    Attributes:
        row: Metrics of each of k seeds.
        resampled: Compared metrics of each seed, ``(k, 1 + resamples)``.
    """

    row: SupervisedRow
    resampled: dict[str, Array]


def measure_supervised_results(task: SupervisedTask) -> SupervisedResults:
    """Measure all methods with all numbers of labelled images.

    Args:
        task: Images, plan, cache and seed. A step of the progress is one fit.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images = task.dataset
    plan, left_out = _plan_for_images(task.plan, images)
    task = replace(task, plan=plan)
    count_step = task.step_counter(plan.n_fits)
    measured = [
        _measure_supervised_row(task, method, count, count_step)
        for count in plan.image_counts
        for method in plan.methods
        if count in plan.image_counts_of_method(method)
    ]
    rows = tuple(entry.row for entry in measured)
    return SupervisedResults(
        dataset=images.name,
        images=(len(images.train), len(images.test)),
        labels=len(images.test.names),
        plan=plan,
        rows=rows,
        differences=tuple(
            difference
            for count in plan.image_counts
            for difference in _differences_of_image_count(
                {entry.row.method: entry for entry in measured if entry.row.n_images == count}
            )
        ),
        demands={
            method: _label_demands([row for row in rows if row.method == method])
            for method in plan.methods
        },
        left_out=left_out,
    )


def _plan_for_images(
    plan: SupervisedPlan, images: EncoderImageSplits
) -> tuple[SupervisedPlan, dict[str, str]]:
    """Return the plan without methods that the encoder does not support, and the reasons.

    Numbers of labelled images above the number of training images are replaced by this number.
    """
    methods, left_out = compatible_methods(images.encoder, plan.methods, images.train.names)
    counts = tuple(dict.fromkeys(min(count, len(images.train)) for count in plan.image_counts))
    return replace(plan, methods=tuple(methods), image_counts=counts), left_out


def _measure_supervised_row(
    task: SupervisedTask, method: str, n_images: int, count_step: Callable[[], None]
) -> _MeasuredRow:
    values, resampled = [], []
    for seed in task.seeds(task.plan.n_seeds(method, n_images)):
        predictions = _predict_sample(task, method, n_images, seed)
        metrics = supervised_metrics(
            task.cache, task.dataset, predictions, resamples=task.plan.resamples
        )
        values.append(metrics[0])
        resampled.append(metrics[1])
        count_step()
    row = SupervisedRow(f"{method}, {n_images:,}", metrics_by_seed(values), method, n_images)
    by_metric = {name: np.stack([seed[name] for seed in resampled]) for name in resampled[0]}
    return _MeasuredRow(row, by_metric)


def _predict_sample(
    task: SupervisedTask, method: str, n_images: int, seed: int
) -> SupervisedPredictions:
    """Return the test predictions of a method with the labelled images of one sample."""
    images, plan, cache = task.dataset, task.plan, task.cache
    rows = plan.sampled_rows(len(images.train), n_images, seed)
    if method not in LABEL_FREE_METHODS:
        run = Run(
            encoder=Choice(images.encoder),
            method=choice_of_bench_method(method),
            calibrator=Choice(CALIBRATOR),
            seed=seed,
        )
        return predict_supervised_test(cache, images, run, rows, folds=plan.folds)
    samples = [
        plan.sampled_rows(len(images.train), count, other_seed)
        for count in plan.image_counts_of_method(method)
        for other_seed in task.seeds(plan.n_seeds(method, count))
    ]
    all_rows = np.unique(np.concatenate(samples))
    scores = score_without_labels(cache, images, method, all_rows, unlabelled=plan.unlabelled)
    return calibrate_label_free_scores(cache, images, scores, rows)


def _differences_of_image_count(
    measured: Mapping[str, _MeasuredRow],
) -> list[SupervisedDifference]:
    """Return the differences of the studied methods with the same number of labelled images.

    Args:
        measured: Measurements by method.
    """
    label_free = [method for method in LABEL_FREE_METHODS if method in measured]
    best = max(label_free, key=lambda method: measured[method].row.mean(MAP), default=None)
    references = [method for method in TRAINED_REFERENCES if method in measured]
    return [
        SupervisedDifference(
            method,
            reference,
            reference == best,
            measured[method].row.n_images,
            _difference(measured[method], measured[reference]),
        )
        for method in STUDIED_METHODS
        if method in measured
        for reference in (*references, *([best] if best else []))
    ]


def _difference(first: _MeasuredRow, second: _MeasuredRow) -> dict[str, RowDifference]:
    """Return the differences of two rows over the seeds that both rows have."""
    n_seeds = min(len(row.row.metrics[MAP]) for row in (first, second))
    metrics, means = zip(*(_of_first_seeds(row, n_seeds) for row in (first, second)), strict=True)
    intervals = bench_resampling_difference_intervals(means[0], means[1])
    return row_differences(metrics[0], metrics[1], intervals)


def _of_first_seeds(
    row: _MeasuredRow, n_seeds: int
) -> tuple[dict[str, list[float]], dict[str, Array]]:
    """Return the metrics of the first seeds, and the means of their resampled metrics."""
    metrics = {name: values[:n_seeds] for name, values in row.row.metrics.items()}
    means = {name: values[:n_seeds].mean(axis=0) for name, values in row.resampled.items()}
    return metrics, means


def _label_demands(rows: Sequence[SupervisedRow]) -> tuple[LabelDemand, ...]:
    intervals = [row.interval(MAP) for row in rows]
    return labels_needed([row.n_images for row in rows], intervals, MAP_LEVELS)
