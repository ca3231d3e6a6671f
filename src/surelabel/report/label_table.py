"""Compute the statistics of each label, and render them as an HTML table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.markup import Markup, markup_element, markup_table_region
from surelabel.report.metric_descriptions import format_described_metric_value

COLUMNS = (
    ("label", "Name of the label."),
    ("images", "Number of images for which the label is positive."),
    (
        "prevalence",
        "Fraction of positive images, which is the average precision of a random ranking.",
    ),
    ("average precision", "Average precision of ranking the images by the score of this label."),
    (
        "Brier skill",
        "If the Brier skill is negative, predicting the prevalence has a lower Brier score.",
    ),
    ("ECE", "Expected calibration error in points. With few images, the ECE is mostly noise."),
    (
        "mean probability",
        "The mean of calibrated probabilities is close to the prevalence of the label.",
    ),
)


@dataclass(frozen=True)
class LabelStatistics:
    """Statistics and metrics of each label. Values that are undefined or not computed are NaN.

    Attributes:
        names: Labels, length c.
        n_positives: Sum of the known targets, which is the number of positives if all targets are 0
            or 1, ``(c,)``.
        prevalence: Mean of the known targets, ``(c,)``.
        mean_probability: Mean probability of decisions with known targets, ``(c,)``. If the
            recognizer is not calibrated, the mean is NaN.
        average_precision: Average precision in [0, 1], ``(c,)``.
        brier_skill: Brier skill, at most 1, ``(c,)``. The skill may be negative.
        ece: Expected calibration error in [0, 1], ``(c,)``.
    """

    names: Sequence[str]
    n_positives: Array
    prevalence: Array
    mean_probability: Array
    average_precision: Array
    brier_skill: Array
    ece: Array


def compute_label_table_statistics(
    names: Sequence[str],
    targets: Array,
    known: Flags,
    probabilities: Array | None,
    metrics: Mapping[str, Array],
) -> LabelStatistics:
    """Compute the statistics of each label.

    Args:
        names: Labels, length c.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        probabilities: Probabilities in [0, 1], ``(n, c)``. If None, the recognizer is not
            calibrated.
        metrics: Mapping from metric to the value of each label, ``(c,)``.
    """
    undefined = np.full(len(names), np.nan)
    n_positives: Array = (targets * known).sum(axis=0)
    return LabelStatistics(
        names=names,
        n_positives=n_positives,
        prevalence=_label_table_mean_of_known_targets(targets, known),
        mean_probability=(
            undefined
            if probabilities is None
            else _label_table_mean_of_known_targets(probabilities, known)
        ),
        average_precision=metrics.get("average_precision", undefined),
        brier_skill=metrics.get("brier_skill", undefined),
        ece=metrics.get("ece", undefined),
    )


def _label_table_mean_of_known_targets(values: Array, known: Flags) -> Array:
    n_known = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    mean: Array = np.divide(total, n_known, out=np.full(len(n_known), np.nan), where=n_known > 0)
    return mean


def render_label_table(labels: LabelStatistics) -> Markup:
    """Return an HTML table of all labels, sorted by increasing average precision, NaN last."""
    columns = zip(
        labels.names,
        labels.n_positives,
        labels.prevalence,
        labels.average_precision,
        labels.brier_skill,
        labels.ece,
        labels.mean_probability,
        strict=True,
    )
    rows = [_label_table_row(*values) for values in columns]
    order = np.argsort(labels.average_precision, kind="stable")
    header = [markup_element("th", title, title=tooltip, scope="col") for title, tooltip in COLUMNS]
    return markup_table_region(
        "Labels", header, [rows[column] for column in order], class_="scroll"
    )


def _label_table_row(
    name: str,
    n_positives: float,
    prevalence: float,
    average_precision: float,
    brier_skill: float,
    ece: float,
    mean_probability: float,
) -> Markup:
    bar = None if np.isnan(average_precision) else f"--share:{100 * average_precision:.0f}"
    return markup_element(
        "tr",
        markup_element("th", name, scope="row", class_="name"),
        markup_element("td", f"{n_positives:,.0f}"),
        markup_element("td", format_described_metric_value(prevalence, "%")),
        markup_element(
            "td",
            format_described_metric_value(average_precision, "%"),
            class_="bar" if bar else None,
            style=bar,
        ),
        markup_element("td", format_described_metric_value(brier_skill, "%")),
        markup_element("td", format_described_metric_value(ece, "points")),
        markup_element("td", format_described_metric_value(mean_probability, "%")),
    )
