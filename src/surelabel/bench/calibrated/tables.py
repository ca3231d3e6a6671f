"""Markdown tables of the calibration comparison."""

from collections.abc import Sequence
from statistics import stdev

from surelabel.bench.calibrated.heads import HEADS
from surelabel.bench.calibrated.plan import TABLE_METRICS
from surelabel.bench.calibrated.published import COLUMNS, PUBLISHED
from surelabel.bench.calibrated.results import CalibrationResults, CalibrationRow, RowComparison
from surelabel.bench.markdown_tables import (
    markdown_interval_excludes_zero,
    markdown_table,
    markdown_table_metric_title,
    markdown_table_metric_unit,
    markdown_table_value,
)
from surelabel.metrics import ConfidenceInterval

DIFFERENCE_METRICS = ("brier_skill", "log_loss", "mean_average_precision", "ace", "ece")


def calibrated_metrics_table(results: CalibrationResults) -> str:
    """Return a table of mean ± standard deviation over fits, with noise floors in brackets."""
    lines = []
    for row in results.rows:
        title = f"**{row.title}**" if row.title in results.near_best else row.title
        lines.append([title, *(_calibrated_table_mean(row, metric) for metric in TABLE_METRICS)])
    return markdown_table(
        ["", *(_calibrated_table_title(metric) for metric in TABLE_METRICS)], lines
    )


def calibrated_settings_table(results: CalibrationResults) -> str:
    """Return a table of the settings selected on validation for each head."""
    lines = []
    for key, head in HEADS.items():
        settings = next(row.settings for row in results.rows if row.head == key)
        pair_weight = settings.get("regularizer_weight")
        values = (settings["learning_rate"], settings["weight_decay"], pair_weight)
        lines.append([head.title, *("" if value is None else f"{value:g}" for value in values)])
    return markdown_table(["", "Learning rate", "Weight decay", "λ of LPR"], lines)


def calibrated_comparisons_table(comparisons: Sequence[RowComparison]) -> str:
    """Return a table of differences with intervals over fits and, if present, over test images."""
    lines = []
    for comparison in comparisons:
        cells = []
        for metric in DIFFERENCE_METRICS:
            intervals = (comparison.over_seeds.get(metric), comparison.over_images.get(metric))
            cells.append(
                " / ".join(
                    _calibrated_table_interval(interval, metric)
                    for interval in intervals
                    if interval
                )
            )
        lines.append([f"{comparison.first} − {comparison.second}", *cells])
    header = [
        _calibrated_table_title(metric).replace("%", "points") for metric in DIFFERENCE_METRICS
    ]
    return markdown_table(["", *header], lines)


def calibrated_sensitivity_table(results: CalibrationResults) -> str:
    """Return a table of metrics, one row for each changed setting of SPA."""
    metrics = [name for name in results.sensitivity[0] if name not in ("setting", "value")]
    lines = [
        [
            f"{entry['setting']} = {entry['value']:g}",
            *(markdown_table_value(entry[metric], metric) for metric in metrics),
        ]
        for entry in results.sensitivity
    ]
    return markdown_table(["", *(_calibrated_table_title(metric) for metric in metrics)], lines)


def calibrated_retrieval_table(results: CalibrationResults) -> str:
    """Return a table of retrieval mAP by query length, with standard errors of sampled queries."""
    first_curve = next(iter(results.retrieval.values()))
    lines = [
        [title, *map(_calibrated_table_mean_with_error, curve["map"], curve["standard_error"])]
        for title, curve in results.retrieval.items()
    ]
    lines.append(["queries evaluated", *(f"{n:,}" for n in first_curve["evaluated"])])
    lines.append(
        ["queries without a relevant image (excluded)"]
        + [f"{n:,}" for n in first_curve["unfulfilled"]]
    )
    header = ["mAP (%) of queries of length", *map(str, first_curve["length"])]
    return markdown_table(header, lines)


def calibrated_tables_as_published() -> str:
    """Return the published tables of the SPA paper as Markdown."""
    sections = []
    for title, rows in PUBLISHED.items():
        lines = [[name, *(f"{value:.1f}" for value in values)] for name, values in rows.items()]
        table = markdown_table(["", *COLUMNS], lines)
        sections.append(f"### Published: {title}\n\n{table}")
    return "\n\n".join(sections)


def _calibrated_table_title(metric: str) -> str:
    return f"{markdown_table_metric_title(metric)} ({markdown_table_metric_unit(metric)})"


def _calibrated_table_mean(row: CalibrationRow, metric: str) -> str:
    text, floor = markdown_table_value(row.mean(metric), metric), f"{metric}_noise_floor"
    if len(row.metrics[metric]) > 1:
        text += f" ± {markdown_table_value(stdev(row.metrics[metric]), metric)}"
    if floor not in row.metrics:
        return text
    return f"{text} [{markdown_table_value(row.mean(floor), metric)}]"


def _calibrated_table_interval(interval: ConfidenceInterval, metric: str) -> str:
    low = markdown_table_value(interval.low, metric)
    high = markdown_table_value(interval.high, metric)
    text = f"{markdown_table_value(interval.value, metric)} ({low} to {high})"
    return f"**{text}**" if markdown_interval_excludes_zero(interval) else text


def _calibrated_table_mean_with_error(mean: float, error: float) -> str:
    text = f"{100 * mean:.2f}"
    return f"{text} ± {100 * error:.2f}" if error > 0 else text
