"""What each metric says, in words for somebody who never learned statistics."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan

NOTHING = "–"  # stands where a number is undefined


@dataclass(frozen=True)
class Meaning:
    """How a metric is shown.

    Attributes:
        title: Its usual name.
        unit: ``%`` of what is possible, ``points`` of a hundred, or ``nats``.
        better: ``higher`` or ``lower``.
        text: What it says.
    """

    title: str
    unit: str
    better: str
    text: str


MEANINGS = {
    "mean_average_precision": Meaning(
        "mAP",
        "%",
        "higher",
        "Sort all pictures by one label: 100 % if every picture that has it comes before every "
        "picture that does not. Mean over the labels.",
    ),
    "mean_average_precision_per_image": Meaning(
        "mAP by picture",
        "%",
        "higher",
        "Sort all labels of one picture: 100 % if those that are there come first. "
        "Mean over the pictures.",
    ),
    "average_precision": Meaning(
        "Average precision",
        "%",
        "higher",
        "The same with all labels of all pictures in one list.",
    ),
    "precision_at_k": Meaning(
        "Precision at k",
        "%",
        "higher",
        "Of the k likeliest labels of each picture, how many are there.",
    ),
    "recall_at_k": Meaning(
        "Recall at k",
        "%",
        "higher",
        "Of the labels that are there, how many are among the k likeliest.",
    ),
    "f1_at_k": Meaning("F1 at k", "%", "higher", "Both of these in one number."),
    "brier_skill": Meaning(
        "Brier skill",
        "%",
        "higher",
        "How much of the squared error goes away, compared with somebody who only knows how common "
        "each label is. 0 %: no use; 100 %: always sure and always right.",
    ),
    "brier": Meaning(
        "Brier score", "points", "lower", "Mean squared distance of the probability from the truth."
    ),
    "log_loss": Meaning(
        "Log loss", "nats", "lower", "Mean surprise at the truth; being sure and wrong costs most."
    ),
    "ece": Meaning(
        "ECE",
        "points",
        "lower",
        "How far probabilities are from what then happens, on average over all decisions.",
    ),
    "ece_of_candidates": Meaning(
        "ECE of candidates",
        "points",
        "lower",
        "The same without the many labels that are plainly absent.",
    ),
    "ace": Meaning(
        "ACE",
        "points",
        "lower",
        "The same, each range of probabilities counting alike, however rare.",
    ),
    "mce": Meaning(
        "MCE", "points", "lower", "How far they are in the worst range of probabilities."
    ),
}


def meaning_of(metric: str) -> Meaning:
    """How a metric is shown; one that has no words yet is shown under its own name."""
    return MEANINGS.get(metric) or Meaning(metric.replace("_", " "), "", "", "")


def in_order(metrics: Iterable[str]) -> list[str]:
    """Metrics in the order of ``MEANINGS``, others after them."""
    given = list(metrics)
    return [m for m in MEANINGS if m in given] + [m for m in given if m not in MEANINGS]


def shown(value: float | None, unit: str) -> str:
    """A number for people.

    Example:
        >>> shown(0.58312, "%"), shown(0.0062, "points"), shown(0.0911, "nats")
        ('58.3 %', '0.62', '0.0911')
        >>> shown(float("nan"), "%"), shown(None, "%")
        ('–', '–')
    """
    if value is None or isnan(value):
        return NOTHING
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "points":
        return f"{100 * value:.2f}"
    return f"{value:.4f}"


def chance(probability: float) -> str:
    """A probability for people; 0 % and 100 % are never claimed.

    Example:
        >>> [chance(p) for p in (0.0004, 0.034, 0.5, 0.9996)]
        ['< 0.1 %', '3.4 %', '50 %', '> 99.9 %']
    """
    if probability < 0.001:
        return "< 0.1 %"
    if probability > 0.999:
        return "> 99.9 %"
    digits = 0 if 0.1 <= probability <= 0.9 else 1
    return f"{100 * probability:.{digits}f} %"
