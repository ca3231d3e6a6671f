"""What each metric says, in words for somebody who never learned statistics."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan

NOTHING = "–"  # stands where nothing was measured
UNDEFINED = "not defined"  # stands where it was, and is not a number
MAIN = 13  # metrics that everybody should see, the first of ``MEANINGS``


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
    "adaptive_ece": Meaning(
        "Adaptive ECE",
        "points",
        "lower",
        "The ECE in ranges that hold as many decisions each, most of them close to 0.",
    ),
    "ace_of_filled": Meaning(
        "ACE of filled bins",
        "points",
        "lower",
        "The ACE without the ranges that hold few decisions.",
    ),
    "mce_of_filled": Meaning(
        "MCE of filled bins",
        "points",
        "lower",
        "The MCE without the ranges that hold few decisions.",
    ),
    "mce_weighted": Meaning(
        "MCE, weighted by counts",
        "points",
        "lower",
        "The largest single part of the ECE; no maximum error, whatever tables call it.",
    ),
    "ece_of_predictions": Meaning(
        "ECE of answers",
        "points",
        "lower",
        "The ECE of being sure of yes or no, whichever is likelier.",
    ),
    "squared_calibration_error": Meaning(
        "Squared calibration error",
        "points",
        "lower",
        "The part of the Brier score that calibration can cure; chance makes it larger.",
    ),
    "accuracy": Meaning(
        "Accuracy",
        "%",
        "higher",
        "Share of right answers, present from 50 % up. Saying never is nearly as right where most "
        "labels are absent.",
    ),
    "balanced_accuracy": Meaning(
        "Balanced accuracy",
        "%",
        "higher",
        "Mean of the share found of what is there and the share left alone of what is not; "
        "guessing gives 50 %.",
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
        ('not defined', '–')
    """
    if value is None:
        return NOTHING
    if isnan(value):
        return UNDEFINED
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "points":
        return f"{100 * value:.2f}"
    return f"{value:.4f}"


def measured(value: float | None, unit: str) -> str:
    """A number with its unit, for a sentence.

    Example:
        >>> measured(0.0062, "points"), measured(0.5, "%"), measured(float("nan"), "nats")
        ('0.62 points', '50.0 %', 'not defined')
    """
    text = shown(value, unit)
    return text if unit == "%" or text in (NOTHING, UNDEFINED) else f"{text} {unit}"


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
