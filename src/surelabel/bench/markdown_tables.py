"""Markdown tables of metric values."""

from collections.abc import Sequence

from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import describe_metric, format_described_metric_value

PAPER_TITLES = {
    "mean_average_precision": "mAP@y",
    "mean_average_precision_per_image": "mAP@x",
}


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with a header row."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_table_value(value: float, metric: str) -> str:
    """Return a formatted metric value without the unit, which is in the column header."""
    return format_described_metric_value(value, markdown_table_metric_unit(metric)).removesuffix(
        " %"
    )


def markdown_table_metric_title(metric: str) -> str:
    """Return the title of a metric in tables; papers of the comparisons define some titles."""
    return PAPER_TITLES.get(metric) or describe_metric(metric).title


def markdown_table_metric_unit(metric: str) -> str:
    """Return the unit of a metric in reports."""
    return describe_metric(metric).unit


def markdown_interval_excludes_zero(interval: ConfidenceInterval) -> bool:
    """Return whether a confidence interval excludes 0."""
    return interval.low > 0 or interval.high < 0
