"""Metrics: ``NAME(scores or probabilities, targets, known=None, *, settings) -> float``.

``METRICS`` holds one number for a whole data set, ``PER_CLASS`` one number a class, ``(c,)``, of
the same name; each is made of a table of metrics that look at the order of scores only and one of
metrics of probabilities. numpy float64; unknown targets have no influence; undefined is NaN. Add
one line to the right table here for a new one.
"""

from collections.abc import Callable

from surelabel.metrics.brier import brier, brier_per_class, brier_skill, brier_skill_per_class
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
from surelabel.metrics.log_loss import log_loss, log_loss_of_logits, log_loss_per_class
from surelabel.metrics.noise_floor import noise_floor
from surelabel.metrics.ranking import (
    average_precision,
    average_precision_per_class,
    average_precision_per_image,
    mean_average_precision,
    mean_average_precision_per_image,
)
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
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
    "brier": brier,
    "brier_skill": brier_skill,
    "ece": ece,
    "ece_of_candidates": ece_of_candidates,
    "log_loss": log_loss,
    "mce": mce,
}
RANKING_PER_CLASS: dict[str, Callable[..., Array]] = {
    "average_precision": average_precision_per_class,
    "f1_at_k": f1_at_k_per_class,
    "precision_at_k": precision_at_k_per_class,
    "recall_at_k": recall_at_k_per_class,
}
PROBABILITY_PER_CLASS: dict[str, Callable[..., Array]] = {
    "ace": ace_per_class,
    "brier": brier_per_class,
    "brier_skill": brier_skill_per_class,
    "ece": ece_per_class,
    "ece_of_candidates": ece_of_candidates_per_class,
    "log_loss": log_loss_per_class,
    "mce": mce_per_class,
}
METRICS = dict(sorted((RANKING | PROBABILITY).items()))
PER_CLASS = dict(sorted((RANKING_PER_CLASS | PROBABILITY_PER_CLASS).items()))

__all__ = [
    "METRICS",
    "PER_CLASS",
    "PROBABILITY",
    "PROBABILITY_PER_CLASS",
    "RANKING",
    "RANKING_PER_CLASS",
    "Reliability",
    "average_precision_per_image",
    "log_loss_of_logits",
    "noise_floor",
    "reliability",
    "reliability_per_class",
    *(entry.__name__ for table in (METRICS, PER_CLASS) for entry in table.values()),
]
