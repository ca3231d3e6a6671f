"""This package defines metrics, called as ``NAME(values, targets, known=None, *, settings)``.

The argument ``values`` contains scores for ranking metrics and probabilities for the other metrics.

The table ``POOLED`` contains metrics that return one number for a dataset. ``PER_CLASS`` contains
metrics that return one number for each of c classes, ``(c,)``. ``METRICS`` contains all entries of
``POOLED`` and, with the suffix ``_per_class`` in the key, all entries of ``PER_CLASS``. ``RANKING``
and ``RANKING_PER_CLASS`` contain metrics of scores. The metrics in ``BINARY_TARGET_METRICS`` refuse
graded targets, that is, targets between 0 and 1. ``PROBABILITY`` and ``PROBABILITY_PER_CLASS``
contain metrics of probabilities. All metrics compute in NumPy float64, ignore unknown targets and
return NaN if the metric is undefined. To add a metric, add one line to ``RANKING`` or
``PROBABILITY``, and one line for the metric per class to ``RANKING_PER_CLASS`` or
``PROBABILITY_PER_CLASS``.
"""

from collections.abc import Callable

from surelabel.arrays import Array
from surelabel.metrics.accuracy import accuracy, accuracy_per_class
from surelabel.metrics.ace import ace, ace_per_class
from surelabel.metrics.adaptive_ece import adaptive_ece, adaptive_ece_per_class
from surelabel.metrics.average_precision import (
    average_precision,
    average_precision_per_class,
    average_precision_per_image,
)
from surelabel.metrics.balanced_accuracy import balanced_accuracy, balanced_accuracy_per_class
from surelabel.metrics.binning.brier_decomposition import (
    BrierDecomposition,
    brier_decomposition,
    brier_decomposition_per_class,
)
from surelabel.metrics.binning.debiased_calibration_error import (
    ece_debiased,
    squared_calibration_error_debiased,
    squared_calibration_error_debiased_per_class,
)
from surelabel.metrics.binning.reliability_bins import (
    ReliabilityBins,
    reliability_bins,
    reliability_bins_per_class,
)
from surelabel.metrics.brier import brier, brier_per_class
from surelabel.metrics.brier_skill import brier_skill, brier_skill_per_class
from surelabel.metrics.ece import ece, ece_per_class
from surelabel.metrics.ece_of_candidates import ece_of_candidates, ece_of_candidates_per_class
from surelabel.metrics.ece_of_predictions import ece_of_predictions, ece_of_predictions_per_class
from surelabel.metrics.f1_at_k import f1_at_k, f1_at_k_per_class
from surelabel.metrics.log_loss import log_loss, log_loss_of_logits, log_loss_per_class
from surelabel.metrics.mce import mce, mce_per_class
from surelabel.metrics.mce_weighted import mce_weighted, mce_weighted_per_class
from surelabel.metrics.mean_average_precision import mean_average_precision
from surelabel.metrics.mean_average_precision_per_image import mean_average_precision_per_image
from surelabel.metrics.precision_at_k import precision_at_k, precision_at_k_per_class
from surelabel.metrics.proximity.neighbour_proximity import neighbour_proximity
from surelabel.metrics.proximity.neighbourhood_calibration_error import (
    neighbourhood_calibration_error,
)
from surelabel.metrics.proximity.piece import piece
from surelabel.metrics.ranking.vqa_accuracy import vqa_accuracy, vqa_accuracy_per_question
from surelabel.metrics.recall_at_k import recall_at_k, recall_at_k_per_class
from surelabel.metrics.resampling.bootstrap import (
    ConfidenceInterval,
    bootstrap_interval,
    paired_bootstrap_interval,
    paired_t_interval,
)
from surelabel.metrics.resampling.noise_floor import noise_floor
from surelabel.metrics.squared_calibration_error import (
    squared_calibration_error,
    squared_calibration_error_per_class,
)
from surelabel.metrics.subsets.class_groups import (
    BaseAndNew,
    base_and_new_metric,
    class_frequency_groups,
    class_frequency_thirds,
    metric_per_class_group,
)
from surelabel.metrics.subsets.pair_calibration import (
    pair_ece,
    pair_ece_first_without_second,
    pair_reliability_bins,
    pair_reliability_bins_first_without_second,
)
from surelabel.metrics.text_vectors.embedding_divergence import embedding_divergence
from surelabel.metrics.text_vectors.neighbourhood_preservation import neighbourhood_preservation

RANKING: dict[str, Callable[..., float]] = {
    "average_precision": average_precision,
    "f1_at_k": f1_at_k,
    "mean_average_precision": mean_average_precision,
    "mean_average_precision_per_image": mean_average_precision_per_image,
    "precision_at_k": precision_at_k,
    "recall_at_k": recall_at_k,
}
PROBABILITY: dict[str, Callable[..., float]] = {
    "ace": ace,
    "accuracy": accuracy,
    "adaptive_ece": adaptive_ece,
    "balanced_accuracy": balanced_accuracy,
    "brier": brier,
    "brier_skill": brier_skill,
    "ece": ece,
    "ece_of_candidates": ece_of_candidates,
    "ece_of_predictions": ece_of_predictions,
    "log_loss": log_loss,
    "mce": mce,
    "mce_weighted": mce_weighted,
    "squared_calibration_error": squared_calibration_error,
}
RANKING_PER_CLASS: dict[str, Callable[..., Array]] = {
    "average_precision": average_precision_per_class,
    "f1_at_k": f1_at_k_per_class,
    "precision_at_k": precision_at_k_per_class,
    "recall_at_k": recall_at_k_per_class,
}
PROBABILITY_PER_CLASS: dict[str, Callable[..., Array]] = {
    "ace": ace_per_class,
    "accuracy": accuracy_per_class,
    "adaptive_ece": adaptive_ece_per_class,
    "balanced_accuracy": balanced_accuracy_per_class,
    "brier": brier_per_class,
    "brier_skill": brier_skill_per_class,
    "ece": ece_per_class,
    "ece_of_candidates": ece_of_candidates_per_class,
    "ece_of_predictions": ece_of_predictions_per_class,
    "log_loss": log_loss_per_class,
    "mce": mce_per_class,
    "mce_weighted": mce_weighted_per_class,
    "squared_calibration_error": squared_calibration_error_per_class,
}
BINARY_TARGET_METRICS = frozenset({*RANKING, "accuracy", "balanced_accuracy"})
POOLED = dict(sorted((RANKING | PROBABILITY).items()))
PER_CLASS = dict(sorted((RANKING_PER_CLASS | PROBABILITY_PER_CLASS).items()))
METRICS: dict[str, Callable[..., float | Array]] = {
    **POOLED,
    **{f"{name}_per_class": metric for name, metric in PER_CLASS.items()},
}

__all__ = [
    "BINARY_TARGET_METRICS",
    "METRICS",
    "PER_CLASS",
    "POOLED",
    "PROBABILITY",
    "PROBABILITY_PER_CLASS",
    "RANKING",
    "RANKING_PER_CLASS",
    "BaseAndNew",
    "BrierDecomposition",
    "ConfidenceInterval",
    "ReliabilityBins",
    "average_precision_per_image",
    "base_and_new_metric",
    "bootstrap_interval",
    "brier_decomposition",
    "brier_decomposition_per_class",
    "ece_debiased",
    "embedding_divergence",
    "metric_per_class_group",
    "class_frequency_groups",
    "class_frequency_thirds",
    "log_loss_of_logits",
    "noise_floor",
    "pair_ece",
    "pair_ece_first_without_second",
    "pair_reliability_bins",
    "pair_reliability_bins_first_without_second",
    "paired_bootstrap_interval",
    "paired_t_interval",
    "piece",
    "neighbourhood_calibration_error",
    "neighbourhood_preservation",
    "neighbour_proximity",
    "reliability_bins",
    "reliability_bins_per_class",
    "squared_calibration_error_debiased",
    "squared_calibration_error_debiased_per_class",
    "vqa_accuracy",
    "vqa_accuracy_per_question",
    *(entry.__name__ for table in (METRICS, PER_CLASS) for entry in table.values()),
]
