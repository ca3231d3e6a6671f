"""Compute the rows of the open-vocabulary tables and their differences from the reference row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.open_vocabulary.fitted_rows import FittedPredictions
from surelabel.bench.open_vocabulary.prediction_metrics import (
    COMPARED_METRICS,
    bootstrap_prediction_metrics,
    evaluate_prediction_metrics,
    prediction_metric_values,
)
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularyTask
from surelabel.bench.resampling import bench_resampling_difference_intervals
from surelabel.bench.result_cache import result_cache_digest
from surelabel.bench.rows import (
    ComparisonRow,
    RowDifference,
    metrics_by_seed,
    row_differences,
)


@dataclass(frozen=True)
class OpenVocabularyRow(ComparisonRow):
    """One row of an open-vocabulary table.

    Attributes:
        parameters: Number of trained parameters.
        seconds: Processor time of fitting, calibration and prediction in seconds, one value for
            each seed.
        differences: Difference from the reference row, by metric. For the reference row, the
            dictionary is empty.
    """

    parameters: int
    seconds: list[float]
    differences: dict[str, RowDifference]


@dataclass(frozen=True)
class SeedMetrics:
    """Predictions and metrics of recognizers that differ only in their seed.

    Attributes:
        predictions: Test predictions, one entry for each seed.
        metrics: Values of each metric, one value for each seed.
        bootstrap_metrics: Mean of each metric over seeds, on the test images and on each resample,
            ``(1 + resamples,)``.
    """

    predictions: Sequence[FittedPredictions]
    metrics: dict[str, list[float]]
    bootstrap_metrics: dict[str, Array]


def measure_open_vocabulary_row_seeds(
    predictions: Sequence[FittedPredictions], task: OpenVocabularyTask
) -> SeedMetrics:
    """Compute all metrics of recognizers that differ only in their seed.

    Args:
        predictions: Test predictions, one for each seed.
        task: Images, plan and cache.
    """
    values, bootstrap_values = zip(
        *(_cached_open_vocabulary_row_metrics(of_seed, task) for of_seed in predictions),
        strict=True,
    )
    return SeedMetrics(
        predictions,
        metrics_by_seed(values),
        {
            name: np.mean([of_seed[name] for of_seed in bootstrap_values], axis=0)
            for name in COMPARED_METRICS
        },
    )


def open_vocabulary_row(
    title: str, metrics: SeedMetrics, reference: SeedMetrics
) -> OpenVocabularyRow:
    """Return a table row, with the differences from the reference row.

    Args:
        title: Title of the row.
        metrics: Metrics of the row.
        reference: Metrics of the reference row.
    """
    return OpenVocabularyRow(
        title,
        metrics.metrics,
        metrics.predictions[0].parameters,
        [predictions.seconds for predictions in metrics.predictions],
        {} if metrics is reference else _open_vocabulary_row_differences(metrics, reference),
    )


def _open_vocabulary_row_differences(
    metrics: SeedMetrics, reference: SeedMetrics
) -> dict[str, RowDifference]:
    over_images = bench_resampling_difference_intervals(
        metrics.bootstrap_metrics, reference.bootstrap_metrics
    )
    return row_differences(metrics.metrics, reference.metrics, over_images)


def _cached_open_vocabulary_row_metrics(
    predictions: FittedPredictions, task: OpenVocabularyTask
) -> tuple[dict[str, float], dict[str, Array]]:
    """Return the metrics of one recognizer on the test images and on each resample."""
    images, cache, resamples = task.dataset, task.cache, task.plan.resamples
    digest = result_cache_digest(predictions.scores, predictions.logits)
    metrics = cache.load_or_compute(
        *("metrics", images.fingerprint, digest),
        compute=lambda: prediction_metric_values(evaluate_prediction_metrics(images, predictions)),
    )
    bootstrap_metrics = cache.load_or_compute_arrays(
        *("bootstrap", images.fingerprint, digest, resamples),
        shapes={name: (1 + resamples,) for name in COMPARED_METRICS},
        compute=lambda: bootstrap_prediction_metrics(images, predictions, resamples=resamples),
    )
    return metrics, bootstrap_metrics
