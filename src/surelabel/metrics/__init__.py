"""Metrics: ``NAME(scores or probabilities, targets, known=None, *, settings) -> float``.

``METRICS`` holds one number for a whole data set, ``PER_CLASS`` one number a class, ``(c,)``, of
the same name; each is made of a table of metrics that look at the order of scores only and one of
metrics of probabilities. numpy float64; unknown targets have no influence; undefined is NaN. Add
one line to the right table here for a new one.
"""

from collections.abc import Callable

from surelabel.metrics.accuracy import (
    accuracy,
    accuracy_per_class,
    balanced_accuracy,
    balanced_accuracy_per_class,
)
from surelabel.metrics.adaptive_ece import adaptive_ece, adaptive_ece_per_class
from surelabel.metrics.brier import brier, brier_per_class, brier_skill, brier_skill_per_class
from surelabel.metrics.brier_parts import BrierParts, brier_parts, brier_parts_per_class
from surelabel.metrics.calibration_error import (
    ace,
    ace_per_class,
    ece,
    ece_of_candidates,
    ece_of_candidates_per_class,
    ece_per_class,
    mce,
    mce_per_class,
)
from surelabel.metrics.debiased import (
    ece_debiased,
    squared_calibration_error_debiased,
    squared_calibration_error_debiased_per_class,
)
from surelabel.metrics.filled import (
    ace_of_filled,
    ace_of_filled_per_class,
    mce_of_filled,
    mce_of_filled_per_class,
)
from surelabel.metrics.groups import (
    BaseAndNew,
    base_and_new,
    grouped,
    groups_by_frequency,
    groups_of_thirds,
)
from surelabel.metrics.interval import Interval, bootstrap, paired_bootstrap, paired_over_seeds
from surelabel.metrics.log_loss import log_loss, log_loss_of_logits, log_loss_per_class
from surelabel.metrics.mce_weighted import mce_weighted, mce_weighted_per_class
from surelabel.metrics.noise_floor import noise_floor
from surelabel.metrics.pairs import (
    pair_ece,
    pair_ece_but_not,
    pair_reliability,
    pair_reliability_but_not,
)
from surelabel.metrics.piece import piece, piece_of_neighbours
from surelabel.metrics.predicted_label import ece_of_predictions, ece_of_predictions_per_class
from surelabel.metrics.proximity import proximity
from surelabel.metrics.ranking import (
    average_precision,
    average_precision_per_class,
    average_precision_per_image,
    mean_average_precision,
    mean_average_precision_per_image,
)
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
from surelabel.metrics.squared_calibration_error import (
    squared_calibration_error,
    squared_calibration_error_per_class,
)
from surelabel.metrics.topk import (
    f1_at_k,
    f1_at_k_per_class,
    precision_at_k,
    precision_at_k_per_class,
    recall_at_k,
    recall_at_k_per_class,
)
from surelabel.records import Array

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
    "ace_of_filled": ace_of_filled,
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
    "mce_of_filled": mce_of_filled,
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
    "ace_of_filled": ace_of_filled_per_class,
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
    "mce_of_filled": mce_of_filled_per_class,
    "mce_weighted": mce_weighted_per_class,
    "squared_calibration_error": squared_calibration_error_per_class,
}
POOLED = dict(sorted((RANKING | PROBABILITY).items()))
PER_CLASS = dict(sorted((RANKING_PER_CLASS | PROBABILITY_PER_CLASS).items()))
METRICS: dict[str, Callable[..., float | Array]] = {
    **POOLED,
    **{f"{name}_per_class": metric for name, metric in PER_CLASS.items()},
}

__all__ = [
    "METRICS",
    "PER_CLASS",
    "POOLED",
    "PROBABILITY",
    "PROBABILITY_PER_CLASS",
    "RANKING",
    "RANKING_PER_CLASS",
    "BaseAndNew",
    "BrierParts",
    "Interval",
    "Reliability",
    "average_precision_per_image",
    "base_and_new",
    "bootstrap",
    "brier_parts",
    "brier_parts_per_class",
    "ece_debiased",
    "grouped",
    "groups_by_frequency",
    "groups_of_thirds",
    "log_loss_of_logits",
    "noise_floor",
    "pair_ece",
    "pair_ece_but_not",
    "pair_reliability",
    "pair_reliability_but_not",
    "paired_bootstrap",
    "paired_over_seeds",
    "piece",
    "piece_of_neighbours",
    "proximity",
    "reliability",
    "reliability_per_class",
    "squared_calibration_error_debiased",
    "squared_calibration_error_debiased_per_class",
    *(entry.__name__ for table in (METRICS, PER_CLASS) for entry in table.values()),
]
