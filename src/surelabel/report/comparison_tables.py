"""Describe a paired comparison by sentences and table rows for a page or a terminal."""

from math import isnan

import numpy as np

from surelabel.counts import format_count
from surelabel.evaluation import Comparison, LabelDifferences, MetricDifference
from surelabel.evaluation.prediction_comparison import MIN_TARGETS
from surelabel.label_aliases import list_labels
from surelabel.report.metric_descriptions import (
    METRIC_DESCRIPTIONS,
    N_MAIN_METRICS,
    NOT_MEASURED,
    UNDEFINED,
    describe_metric,
    format_described_metric_value,
    sort_by_metric_descriptions,
)

METRIC_HEADER = ("metric", "A", "B", "B − A", "95 % interval", "unit", "better")
MAX_LISTED_LABELS = 8
DIFFERENCE_UNITS = {"%": "points"}  # a difference of percentages is in points
ComparisonTable = tuple[list[str], list[list[str]]]  # header and rows


def format_metric_difference(value: float, unit: str) -> str:
    """Format a difference in a metric with its sign and without the unit.

    Example:
        >>> [format_metric_difference(0.0123, unit) for unit in ("%", "points", "nats")]
        ['+1.2', '+1.23', '+0.0123']
    """
    if isnan(value):
        return UNDEFINED
    if unit in ("%", "points"):
        return f"{100 * value:+.{1 if unit == '%' else 2}f}"
    return f"{value:+.4f}"


def better_model(metric: str, low: float, high: float) -> str:
    """Return the model with the better metric, A or B.

    If the interval contains 0 or is NaN, return a dash.

    Args:
        metric: Key of the metric.
        low: Lower end of the interval of B − A.
        high: Upper end of the interval.

    Example:
        >>> better_model("log_loss", -0.2, -0.1), better_model("brier_skill", -0.2, 0.1)
        ('B', '–')
    """
    if not (low > 0 or high < 0):
        return NOT_MEASURED
    return "B" if (low > 0) == (describe_metric(metric).better == "higher") else "A"


def comparison_sentences(comparison: Comparison) -> list[str]:
    """Return sentences on the compared models and data, and on the images that were left out."""
    noun = comparison.row_noun
    sentences = [
        f"A: {comparison.first}. B: {comparison.second}.",
        f"{format_count(comparison.n_images, noun)}, "
        f"{format_count(len(comparison.names), 'label')}.",
    ]
    calibrations = (comparison.first_calibration, comparison.second_calibration)
    for model, calibration in zip("AB", calibrations, strict=True):
        sentences.append(f"Calibration of {model}: {calibration or 'none'}.")
    if not comparison.is_calibrated:
        uncalibrated = [m for m, c in zip("AB", calibrations, strict=True) if c is None]
        sentences.append(
            f"Only ranking metrics are compared, because {' and '.join(uncalibrated)} "
            f"{'has' if len(uncalibrated) == 1 else 'have'} no calibrated probabilities."
        )
    left_out = _left_out_parts(comparison)
    if left_out:
        sentences.append(f"Left out: {'; '.join(left_out)}.")
    if not comparison.resamples:
        return [*sentences, f"There are no intervals, because one {noun} cannot be resampled."]
    return [
        *sentences,
        f"The intervals are paired bootstrap intervals over {noun}s, computed from "
        f"{format_count(comparison.resamples, 'resample')}.",
    ]


def _left_out_parts(comparison: Comparison) -> list[str]:
    noun = comparison.row_noun
    parts = [
        f"{format_count(count, f'annotated {noun}')} without a prediction of {model}"
        for model, count in (
            ("A", comparison.images_without_first),
            ("B", comparison.images_without_second),
        )
        if count
    ]
    if comparison.unannotated_images:
        count = format_count(comparison.unannotated_images, noun)
        parts.append(f"{count} with predictions and without annotations")
    for what, labels in (
        ("of A only", comparison.labels_of_first_only),
        ("of B only", comparison.labels_of_second_only),
        ("without a known target", comparison.unannotated_labels),
    ):
        if labels:
            more = ", …" if len(labels) > MAX_LISTED_LABELS else ""
            listed = list_labels(list(labels)[:MAX_LISTED_LABELS])
            parts.append(f"{format_count(len(labels), 'label')} {what} ({listed}{more})")
    return parts


def comparison_metric_rows(comparison: Comparison, *, main_only: bool = False) -> ComparisonTable:
    """Return the header and the rows of the table of metrics.

    Args:
        comparison: Result of the comparison.
        main_only: Whether to leave out less common metrics.
    """
    main = list(METRIC_DESCRIPTIONS)[:N_MAIN_METRICS]
    metrics = sort_by_metric_descriptions(comparison.metrics)
    return list(METRIC_HEADER), [
        _metric_row(metric, comparison.metrics[metric])
        for metric in metrics
        if metric in main or not main_only
    ]


def _metric_row(metric: str, values: MetricDifference) -> list[str]:
    description, interval = describe_metric(metric), values.difference
    unit = description.unit
    return [
        description.title,
        format_described_metric_value(values.first, unit),
        format_described_metric_value(values.second, unit),
        format_metric_difference(interval.value, unit),
        _format_interval(interval.low, interval.high, unit),
        DIFFERENCE_UNITS.get(unit, unit),
        better_model(metric, interval.low, interval.high),
    ]


def _format_interval(low: float, high: float, unit: str) -> str:
    if isnan(low):
        return UNDEFINED
    return f"{format_metric_difference(low, unit)} to {format_metric_difference(high, unit)}"


def label_difference_sentences(comparison: Comparison) -> list[str]:
    """Return sentences with the number of labels for which A or B is better, by metric."""
    sentences = []
    for metric, labels in comparison.labels.items():
        better = _better_models(metric, labels)
        n_tested = int((~np.isnan(labels.adjusted_p_values)).sum())
        if n_tested:
            sentences.append(
                f"{describe_metric(metric).title} of {format_count(n_tested, 'tested label')}: B "
                f"is significantly better for {format_count(better.count('B'), 'label')}, A for "
                f"{format_count(better.count('A'), 'label')}."
            )
    if sentences:
        sentences.append(
            "For each metric, the false discovery rate of these differences is at most 5 % "
            "(Benjamini-Hochberg correction). Without the correction, about 5 % of the labels "
            "would differ significantly if A and B were equally good."
        )
    n_untested = int(np.isnan(next(iter(comparison.labels.values())).adjusted_p_values).sum())
    if n_untested:
        sentences.append(
            f"{format_count(n_untested, 'label')} with fewer than {MIN_TARGETS} positive or "
            f"fewer than {MIN_TARGETS} negative targets cannot be tested."
        )
    return sentences


def comparison_label_rows(
    comparison: Comparison, *, different_only: bool = False
) -> ComparisonTable:
    """Return the header and the rows of the table of labels, the lowest p-value first.

    Each metric has three columns: its value for A and for B, and B − A with the interval. An
    asterisk marks a difference at a false discovery rate of 5 %.

    Args:
        comparison: Result of the comparison.
        different_only: Whether to leave out labels without an asterisk, and the values of A and B.
    """
    header = ["label", "positives"]
    for metric in comparison.labels:
        title = describe_metric(metric).title
        unit = DIFFERENCE_UNITS.get(describe_metric(metric).unit, describe_metric(metric).unit)
        header += [] if different_only else [f"{title}, A", f"{title}, B"]
        header.append(f"{title}, B − A (95 %), {unit}")
    p_values = np.stack([labels.adjusted_p_values for labels in comparison.labels.values()])
    lowest = np.where(np.isnan(p_values), np.inf, p_values).min(axis=0)
    is_different = np.stack([labels.is_different for labels in comparison.labels.values()])
    rows = [
        _label_row(comparison, int(column), without_values=different_only)
        for column in np.argsort(lowest, kind="stable")
        if is_different[:, column].any() or not different_only
    ]
    return header, rows


def _label_row(comparison: Comparison, column: int, *, without_values: bool) -> list[str]:
    row = [comparison.names[column], f"{comparison.n_positives[column]:,.0f}"]
    for metric, labels in comparison.labels.items():
        unit = describe_metric(metric).unit
        if not without_values:
            row += [
                format_described_metric_value(float(values[column]), unit)
                for values in (labels.first, labels.second)
            ]
        difference = format_metric_difference(float(labels.difference[column]), unit)
        interval = _format_interval(float(labels.low[column]), float(labels.high[column]), unit)
        mark = " *" if labels.is_different[column] else ""
        row.append(difference if difference == UNDEFINED else f"{difference} ({interval}){mark}")
    return row


def _better_models(metric: str, labels: LabelDifferences) -> list[str]:
    """Return the better model, A or B, for each label with a significant difference."""
    return [
        better_model(metric, float(difference), float(difference))
        for difference in labels.difference[labels.is_different]
    ]
