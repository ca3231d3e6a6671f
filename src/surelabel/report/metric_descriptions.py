"""Describe each metric by title, unit, direction and definition, and format metric values."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan

NOT_MEASURED = "–"  # shown if a metric was not computed
UNDEFINED = "not defined"  # shown if a metric is NaN
N_MAIN_METRICS = 13  # first metrics; the table of the other metrics is collapsed


@dataclass(frozen=True)
class MetricDescription:
    """Description of a metric for readers of a report.

    Attributes:
        title: Usual name of the metric.
        unit: Unit of the metric: ``%``, ``points`` (one point is 0.01) or ``nats``.
        better: Direction of improvement, ``higher`` or ``lower``.
        text: Definition of the metric in one or two sentences.
    """

    title: str
    unit: str
    better: str
    text: str


METRIC_DESCRIPTIONS = {
    "mean_average_precision": MetricDescription(
        "mAP",
        "%",
        "higher",
        "Average precision of ranking all images by the score of one label, averaged over labels. "
        "The mAP is 100 % if, for each label, all positive images rank above all negative images.",
    ),
    "mean_average_precision_per_image": MetricDescription(
        "mAP by image",
        "%",
        "higher",
        "Average precision of ranking all labels of one image, averaged over images. The mAP by "
        "image is 100 % if, in each image, all positive labels rank above all negative labels.",
    ),
    "average_precision": MetricDescription(
        "Average precision",
        "%",
        "higher",
        "Micro-averaged average precision: the labels of all images are ranked together.",
    ),
    "precision_at_k": MetricDescription(
        "Precision at k",
        "%",
        "higher",
        "Fraction of positive labels among the k labels with the highest scores of each image.",
    ),
    "recall_at_k": MetricDescription(
        "Recall at k",
        "%",
        "higher",
        "Fraction of the positive labels that are among the k labels with the highest scores of "
        "their image.",
    ),
    "f1_at_k": MetricDescription(
        "F1 at k", "%", "higher", "Harmonic mean of precision at k and recall at k."
    ),
    "brier_skill": MetricDescription(
        "Brier skill",
        "%",
        "higher",
        "Reduction of the Brier score relative to predicting the prevalence of each label. 0 % "
        "equals predicting the prevalence; 100 % is perfect.",
    ),
    "brier": MetricDescription(
        "Brier score",
        "points",
        "lower",
        "Mean squared difference between probability and target.",
    ),
    "log_loss": MetricDescription(
        "Log loss",
        "nats",
        "lower",
        "Mean binary cross-entropy. Confident errors, such as a probability of 1 % for a positive "
        "label, have the largest loss.",
    ),
    "ece": MetricDescription(
        "ECE",
        "points",
        "lower",
        "Expected calibration error: absolute difference between mean probability and fraction of "
        "positives in a bin, averaged over bins. The weight of a bin is its number of decisions.",
    ),
    "ece_of_candidates": MetricDescription(
        "ECE of candidates",
        "points",
        "lower",
        "ECE of the decisions whose probability reaches the threshold. Decisions with a "
        "probability close to 0 are excluded.",
    ),
    "ace": MetricDescription(
        "ACE",
        "points",
        "lower",
        "Average calibration error: ECE with equal weight for each bin that is not empty.",
    ),
    "mce": MetricDescription(
        "MCE",
        "points",
        "lower",
        "Maximum calibration error: largest absolute difference between the mean probability and "
        "the fraction of positives in any bin.",
    ),
    "adaptive_ece": MetricDescription(
        "Adaptive ECE",
        "points",
        "lower",
        "ECE in bins with equal numbers of decisions. Most of these bins contain probabilities "
        "close to 0.",
    ),
    "mce_weighted": MetricDescription(
        "MCE, weighted by counts",
        "points",
        "lower",
        "Largest term of the ECE: the difference in a bin times the fraction of decisions in the "
        "bin. Some papers report this term as MCE, but this term is not the largest error.",
    ),
    "ece_of_predictions": MetricDescription(
        "ECE of predictions",
        "points",
        "lower",
        "ECE of the decisions at a threshold of 50 %. The confidence is the probability of the "
        "predicted class (positive or negative).",
    ),
    "squared_calibration_error": MetricDescription(
        "Squared calibration error",
        "points",
        "lower",
        "Calibration term of the Brier score: mean squared calibration error of the bins. With "
        "few decisions per bin, noise increases this term.",
    ),
    "accuracy": MetricDescription(
        "Accuracy",
        "%",
        "higher",
        "Fraction of correct decisions at a threshold of 50 %. If most targets are negative, "
        "a model that predicts no label also has a high accuracy.",
    ),
    "balanced_accuracy": MetricDescription(
        "Balanced accuracy",
        "%",
        "higher",
        "Mean of the true positive rate and the true negative rate; random guessing reaches 50 %.",
    ),
}


def describe_metric(metric: str) -> MetricDescription:
    """Return the description of a metric.

    If the metric is not in ``METRIC_DESCRIPTIONS``, the description has only a title.
    """
    return METRIC_DESCRIPTIONS.get(metric) or MetricDescription(
        metric.replace("_", " "), "", "", ""
    )


def sort_by_metric_descriptions(metrics: Iterable[str]) -> list[str]:
    """Return metrics in the order of ``METRIC_DESCRIPTIONS``, followed by unlisted metrics."""
    names = list(metrics)
    listed = [metric for metric in METRIC_DESCRIPTIONS if metric in names]
    return listed + [metric for metric in names if metric not in METRIC_DESCRIPTIONS]


def format_described_metric_value(value: float | None, unit: str) -> str:
    """Format a metric value without the unit, except for the percent sign.

    Example:
        >>> [format_described_metric_value(x, "%") for x in (0.58312, float("nan"), None)]
        ['58.3 %', 'not defined', '–']
        >>> format_described_metric_value(0.0062, "points")
        '0.62'
        >>> format_described_metric_value(0.0911, "nats")
        '0.0911'
    """
    if value is None:
        return NOT_MEASURED
    if isnan(value):
        return UNDEFINED
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "points":
        return f"{100 * value:.2f}"
    return f"{value:.4f}"


def format_described_metric_with_unit(value: float | None, unit: str) -> str:
    """Format a metric value with the unit, for use in a sentence.

    Example:
        >>> format_described_metric_with_unit(0.0062, "points")
        '0.62 points'
        >>> format_described_metric_with_unit(0.5, "%")
        '50.0 %'
        >>> format_described_metric_with_unit(float("nan"), "nats")
        'not defined'
    """
    text = format_described_metric_value(value, unit)
    return text if unit == "%" or text in (NOT_MEASURED, UNDEFINED) else f"{text} {unit}"


def format_described_probability(probability: float) -> str:
    """Format a probability in percent, with bounds such as ``> 99.9 %`` near 0 and 1.

    Example:
        >>> [format_described_probability(p) for p in (0.0004, 0.034, 0.5, 0.9996)]
        ['< 0.1 %', '3.4 %', '50 %', '> 99.9 %']
    """
    if probability < 0.001:
        return "< 0.1 %"
    if probability > 0.999:
        return "> 99.9 %"
    digits = 0 if 0.1 <= probability <= 0.9 else 1
    return f"{100 * probability:.{digits}f} %"
