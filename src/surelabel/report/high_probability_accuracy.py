"""Measure the accuracy of the decisions with a high probability."""

from dataclasses import dataclass

from surelabel.arrays import Array, Flags
from surelabel.metrics import ConfidenceInterval
from surelabel.report.ratio_intervals import ratio_of_sums_intervals

HIGH_PROBABILITY = 0.8


@dataclass(frozen=True)
class HighProbabilityAccuracy:
    """Accuracy of the decisions with a probability of 0.8 or more.

    Attributes:
        threshold: Lowest probability of the counted decisions, 0.8.
        decisions: Number of decisions with a probability of 0.8 or more.
        accuracy: Fraction of positive targets among the decisions, with its 95 % bootstrap interval
            over images.
        mean_probability: Mean probability of the decisions, which is close to the accuracy for
            calibrated probabilities.
    """

    threshold: float
    decisions: int
    accuracy: ConfidenceInterval
    mean_probability: float


def measure_high_probability_accuracy(
    probabilities: Array, targets: Array, known: Flags
) -> HighProbabilityAccuracy | None:
    """Return the accuracy of the decisions with a probability of 0.8 or more.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Returns:
        The accuracy, or None if no decision has a probability of 0.8 or more.
    """
    is_high = (probabilities >= HIGH_PROBABILITY) & known
    if not is_high.any():
        return None
    n_decisions = is_high.sum(axis=1, keepdims=True).astype(float)
    n_positive = (targets * is_high).sum(axis=1, keepdims=True)
    (accuracy,) = ratio_of_sums_intervals(n_positive, n_decisions)
    mean_probability = float(probabilities[is_high].mean())
    return HighProbabilityAccuracy(HIGH_PROBABILITY, int(is_high.sum()), accuracy, mean_probability)
