"""Rows of the open-vocabulary tables, with their differences to the reference row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from surelabel.bench.open_vocabulary.fitted_rows import FittedPredictions
from surelabel.bench.open_vocabulary.plan import OpenVocabularyPlan
from surelabel.bench.open_vocabulary.prediction_metrics import (
    COMPARED_METRICS,
    bootstrap_metric_values,
    evaluate_fitted_predictions,
    metric_values,
)
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.resampling import difference_intervals
from surelabel.bench.result_cache import ResultCache, array_digest
from surelabel.metrics import ConfidenceInterval, paired_t_interval
from surelabel.records import Array


@dataclass(frozen=True)
class ReferenceDifference:
    """Difference of a row to the reference in one metric, mean over seeds.

    Attributes:
        value: Difference on the test images.
        over_seeds: 95 % interval over repeated training, for these test images.
        over_images: 95 % interval over test images, for these trained recognizers.
    """

    value: float
    over_seeds: ConfidenceInterval
    over_images: ConfidenceInterval

    @property
    def excludes_zero(self) -> bool:
        """Whether both intervals lie on the same side of 0."""
        lows = (self.over_seeds.low, self.over_images.low)
        highs = (self.over_seeds.high, self.over_images.high)
        return min(lows) > 0 or max(highs) < 0


@dataclass(frozen=True)
class OpenVocabularyRow:
    """One row of a table.

    Attributes:
        title: Title of the method or variant.
        metrics: One value for each seed, by metric.
        parameters: Number of trained parameters.
        seconds: Processor seconds of each seed.
        differences: Difference to the reference, by metric; empty for the reference.
    """

    title: str
    metrics: dict[str, list[float]]
    parameters: int
    seconds: list[float]
    differences: dict[str, ReferenceDifference]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over seeds."""
        return mean(self.metrics[metric])


@dataclass(frozen=True)
class SeedMetrics:
    """Predictions and metrics of recognizers that differ only in their seed.

    Attributes:
        predictions: Test predictions, one for each seed.
        metrics: One value for each seed, by metric.
        bootstrap_metrics: Mean over seeds on the test images and on each resample, by metric,
            ``(1 + resamples,)`` each.
    """

    predictions: Sequence[FittedPredictions]
    metrics: dict[str, list[float]]
    bootstrap_metrics: dict[str, Array]


def measure_seeds(
    predictions: Sequence[FittedPredictions],
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    cache: ResultCache,
) -> SeedMetrics:
    """Compute all metrics of recognizers that differ only in their seed.

    Args:
        predictions: Test predictions, one for each seed.
        images: Images whose test targets are used.
        plan: Amount of work.
        cache: Cache of the metrics.
    """
    values = [_cached_metric_values(of_seed, images, cache) for of_seed in predictions]
    resampled = [_cached_bootstrap_values(of_seed, images, plan, cache) for of_seed in predictions]
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
    """Create a table row with its differences to the reference.

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
        {} if metrics is reference else _reference_differences(metrics, reference),
    )


def _reference_differences(
    metrics: SeedMetrics, reference: SeedMetrics
) -> dict[str, ReferenceDifference]:
    over_images = difference_intervals(metrics.bootstrap_metrics, reference.bootstrap_metrics)
    differences: dict[str, ReferenceDifference] = {}
    for name in COMPARED_METRICS:
        over_seeds = paired_t_interval(np.subtract(metrics.metrics[name], reference.metrics[name]))
        differences[name] = ReferenceDifference(over_seeds.value, over_seeds, over_images[name])
    return differences


def _cached_metric_values(
    predictions: FittedPredictions, images: OpenVocabularySplits, cache: ResultCache
) -> Mapping[str, float]:
    digest = array_digest(predictions.scores, predictions.logits)
    values: Mapping[str, float] = cache.load_or_compute(
        *("metrics", images.fingerprint, digest),
        compute=lambda: metric_values(evaluate_fitted_predictions(images, predictions)),
    )
    return values


def _cached_bootstrap_values(
    predictions: FittedPredictions,
    images: OpenVocabularySplits,
    plan: OpenVocabularyPlan,
    cache: ResultCache,
) -> dict[str, Array]:
    digest = array_digest(predictions.scores, predictions.logits)
    return cache.load_or_compute_arrays(
        *("bootstrap", images.fingerprint, digest, plan.resamples),
        shapes={name: (1 + plan.resamples,) for name in COMPARED_METRICS},
        compute=lambda: bootstrap_metric_values(images, predictions, resamples=plan.resamples),
    )
