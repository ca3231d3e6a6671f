"""Rows of the open-vocabulary tables, with their differences from the reference row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.open_vocabulary.fitted_rows import FittedPredictions
from surelabel.bench.open_vocabulary.plan import OpenVocabularyPlan
from surelabel.bench.open_vocabulary.prediction_metrics import (
    COMPARED_METRICS,
    bootstrap_prediction_metrics,
    evaluate_prediction_metrics,
    prediction_metric_values,
)
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.resampling import bench_resampling_difference_intervals
from surelabel.bench.result_cache import ResultCache, result_cache_array_digest
from surelabel.metrics import ConfidenceInterval, paired_t_interval


@dataclass(frozen=True)
class OpenVocabularyRowDifference:
    """Difference in one metric between a row and the reference row, averaged over seeds.

    Attributes:
        value: Metric of the row minus that of the reference row.
        over_seeds: 95 % interval over seeds, for fixed test images.
        over_images: 95 % interval over test images, for fixed recognizers.
    """

    value: float
    over_seeds: ConfidenceInterval
    over_images: ConfidenceInterval

    @property
    def excludes_zero(self) -> bool:
        """Whether both intervals exclude 0 on the same side."""
        lows = (self.over_seeds.low, self.over_images.low)
        highs = (self.over_seeds.high, self.over_images.high)
        return min(lows) > 0 or max(highs) < 0


@dataclass(frozen=True)
class OpenVocabularyRow:
    """One row of an open-vocabulary table.

    Attributes:
        title: Title of the method or variant.
        metrics: Values of each metric, one value for each seed.
        parameters: Number of trained parameters.
        seconds: Processor time of fitting, calibration and prediction in seconds, one value for
            each seed.
        differences: Difference from the reference row, by metric. For the reference row, the
            dictionary is empty.
    """

    title: str
    metrics: dict[str, list[float]]
    parameters: int
    seconds: list[float]
    differences: dict[str, OpenVocabularyRowDifference]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over seeds."""
        return mean(self.metrics[metric])


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
    predictions: Sequence[FittedPredictions],
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    cache: ResultCache,
) -> SeedMetrics:
    """Compute all metrics of recognizers that differ only in their seed.

    Args:
        predictions: Test predictions, one for each seed.
        images: Images whose test targets are used.
        plan: Sizes and settings of the comparison.
        cache: Cache of the metrics.
    """
    values = [
        _cached_open_vocabulary_row_metrics(of_seed, images, cache) for of_seed in predictions
    ]
    resampled = [
        _cached_open_vocabulary_row_bootstrap(of_seed, images, plan, cache)
        for of_seed in predictions
    ]
    return SeedMetrics(
        predictions,
        {name: [of_seed[name] for of_seed in values] for name in values[0]},
        {
            name: np.mean([of_seed[name] for of_seed in resampled], axis=0)
            for name in COMPARED_METRICS
        },
    )


def open_vocabulary_row(
    title: str, metrics: SeedMetrics, reference: SeedMetrics
) -> OpenVocabularyRow:
    """Create a table row with the differences from the reference row.

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
) -> dict[str, OpenVocabularyRowDifference]:
    over_images = bench_resampling_difference_intervals(
        metrics.bootstrap_metrics, reference.bootstrap_metrics
    )
    differences: dict[str, OpenVocabularyRowDifference] = {}
    for name in COMPARED_METRICS:
        over_seeds = paired_t_interval(np.subtract(metrics.metrics[name], reference.metrics[name]))
        differences[name] = OpenVocabularyRowDifference(
            over_seeds.value, over_seeds, over_images[name]
        )
    return differences


def _cached_open_vocabulary_row_metrics(
    predictions: FittedPredictions, images: OpenVocabularySplits, cache: ResultCache
) -> Mapping[str, float]:
    digest = result_cache_array_digest(predictions.scores, predictions.logits)
    values: Mapping[str, float] = cache.load_or_compute(
        *("metrics", images.fingerprint, digest),
        compute=lambda: prediction_metric_values(evaluate_prediction_metrics(images, predictions)),
    )
    return values


def _cached_open_vocabulary_row_bootstrap(
    predictions: FittedPredictions,
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    cache: ResultCache,
) -> dict[str, Array]:
    digest = result_cache_array_digest(predictions.scores, predictions.logits)
    return cache.load_or_compute_arrays(
        *("bootstrap", images.fingerprint, digest, plan.resamples),
        shapes={name: (1 + plan.resamples,) for name in COMPARED_METRICS},
        compute=lambda: bootstrap_prediction_metrics(images, predictions, resamples=plan.resamples),
    )
