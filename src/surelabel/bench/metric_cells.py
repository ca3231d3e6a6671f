"""Format metric values in tables and sentences: means, deviations, noise floors, intervals."""

from collections.abc import Callable
from math import isnan
from statistics import stdev

from surelabel.bench.rows import ComparisonRow
from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import (
    UNDEFINED,
    describe_metric,
    format_described_metric_value,
)

PAPER_TITLES = {
    "mean_average_precision": "mAP@y",
    "mean_average_precision_per_image": "mAP@x",
}


def metric_column_title(metric: str) -> str:
    """Return the column title of a metric, such as mAP@y or mAP@x."""
    return PAPER_TITLES.get(metric) or describe_metric(metric).title


def metric_column_value(value: float, metric: str) -> str:
    """Return a formatted metric value without its unit, which the column header contains."""
    return format_described_metric_value(value, describe_metric(metric).unit).removesuffix(" %")


def percent_text(value: float, spec: str = ".1f") -> str:
    """Return a value in percent, without the percent sign.

    Args:
        value: Value, where 1 is 100 %.
        spec: Format specification of Python, such as ``+.2f``.

    Example:
        >>> percent_text(0.5), percent_text(0.012, "+.2f")
        ('50.0', '+1.20')
    """
    return f"{100 * value:{spec}}"


def percent_column(metric: str, spec: str = ".1f") -> Callable[[ComparisonRow], str]:
    """Return a function that returns the mean of a metric over the seeds of a row, in percent."""
    return lambda row: percent_text(row.mean(metric), spec)


def metric_mean_cell(
    row: ComparisonRow, metric: str, format_value: Callable[[float], str] = percent_text
) -> str:
    """Return the mean of a metric, its deviation and its noise floor: ``mean ± deviation [floor]``.

    The standard deviation is omitted for rows with one seed. The noise floor is omitted if the row
    does not contain it. If the metric is undefined for a seed, the text is "not defined".

    Args:
        row: Row of a table.
        metric: Metric of the row.
        format_value: Function that returns the text of a value.
    """
    if isnan(row.mean(metric)):
        return UNDEFINED
    text, values = format_value(row.mean(metric)), row.metrics[metric]
    if len(values) > 1:
        text += f" ± {format_value(stdev(values))}"
    return text + noise_floor_suffix(row, metric, format_value)


def noise_floor_suffix(
    row: ComparisonRow, metric: str, format_value: Callable[[float], str] = percent_text
) -> str:
    """Return the noise floor of a metric in brackets, or an empty string if the row has none."""
    floor = f"{metric}_noise_floor"
    return f" [{format_value(row.mean(floor))}]" if floor in row.metrics else ""


def interval_cell(
    value: float,
    *intervals: ConfidenceInterval,
    format_value: Callable[[float], str] = percent_text,
) -> str:
    """Return a value with its intervals: ``value (low to high; low to high)``.

    Args:
        value: Value, such as a difference of two rows.
        intervals: One or more confidence intervals of the value.
        format_value: Function that returns the text of a value.
    """
    bounds = [
        f"{format_value(interval.low)} to {format_value(interval.high)}" for interval in intervals
    ]
    return f"{format_value(value)} ({'; '.join(bounds)})"
