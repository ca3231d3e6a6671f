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
    """Return a formatted metric value without its unit, which the column header contains."""
    return format_described_metric_value(value, markdown_table_metric_unit(metric)).removesuffix(
        " %"
    )


def markdown_table_metric_title(metric: str) -> str:
    """Return the column title of a metric; mean average precision is titled mAP@y or mAP@x."""
    return PAPER_TITLES.get(metric) or describe_metric(metric).title


def markdown_table_metric_unit(metric: str) -> str:
    """Return the unit of a metric, as in the evaluation report."""
    return describe_metric(metric).unit


def markdown_interval_excludes_zero(interval: ConfidenceInterval) -> bool:
    """Return whether a confidence interval excludes 0."""
    return interval.low > 0 or interval.high < 0
