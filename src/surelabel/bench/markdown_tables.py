"""Markdown tables of metric values."""

from collections.abc import Sequence

from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import describe_metric, format_value

PAPER_TITLES = {
    "mean_average_precision": "mAP@y",
    "mean_average_precision_per_image": "mAP@x",
}


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with a header row."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_without_unit(value: float, metric: str) -> str:
    """Format a metric value without its unit, which is in the header of its column."""
    return format_value(value, metric_unit(metric)).removesuffix(" %")


def metric_title(metric: str) -> str:
    """Return the title of a metric in the paper, or else its title in reports."""
    return PAPER_TITLES.get(metric) or describe_metric(metric).title


def metric_unit(metric: str) -> str:
    """Return the unit of a metric in reports."""
    return describe_metric(metric).unit


def excludes_zero(interval: ConfidenceInterval) -> bool:
    """Return whether an interval excludes 0."""
    return interval.low > 0 or interval.high < 0
