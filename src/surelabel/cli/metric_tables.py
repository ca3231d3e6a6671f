"""Format metrics of evaluations as text tables and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from surelabel.cli.label_tree_option import label_tree_metrics_as_text
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation
    from surelabel.recognizer.calibration_record import CalibrationRecord

CALIBRATION_METRICS = ("brier_skill", "log_loss", "ece")


def metric_tables_as_json(evaluation: "Evaluation") -> dict[str, Any]:
    """Return all metrics of an evaluation for ``--json``."""
    return {
        "images": len(evaluation.predictions),
        "calibration": evaluation.predictions.calibration,
        "summary": evaluation.summary,
        "intervals": {name: asdict(value) for name, value in evaluation.intervals.items()},
        "noise_floor": evaluation.noise_floor,
        "class_means": evaluation.class_means,
        "class_noise_floor": evaluation.class_noise_floor,
        "undefined": evaluation.undefined_classes,
    }


def metric_tables_as_text(evaluation: "Evaluation") -> str:
    """Return a table of the main metrics, and the number of labels with undefined metrics."""
    from surelabel.report.metric_descriptions import (
        METRIC_DESCRIPTIONS,
        N_MAIN_METRICS,
        describe_metric,
        sort_by_metric_descriptions,
    )

    predictions, main_metrics = evaluation.predictions, list(METRIC_DESCRIPTIONS)[:N_MAIN_METRICS]
    metrics = [
        metric
        for metric in sort_by_metric_descriptions(evaluation.summary)
        if metric in main_metrics
    ]
    undefined = [
        f"{describe_metric(metric).title} {evaluation.undefined_classes[metric]}"
        for metric in metrics
        if evaluation.undefined_classes.get(metric)
    ]
    calibration = predictions.calibration or "none, so the scores are not probabilities"
    lines = [
        f"{format_count(len(predictions), predictions.row_noun)}, "
        f"{format_count(len(predictions.names), 'label')}; calibration: {calibration}.",
        format_metric_table({"value": evaluation}, metrics),
        f"Number of labels for which a metric is undefined: {', '.join(undefined) or 'none'}.",
    ]
    n_more = len(evaluation.summary) - len(metrics)
    if n_more:
        lines.append(
            f"The results of --json and --report contain {format_count(n_more, 'more metric')}."
        )
    return "\n".join(lines)


def calibration_as_text(calibration: "CalibrationRecord") -> str:
    """Return a description of a calibration, of the selection of its calibrator and its tree."""
    tree = calibration.tree
    sentences = [
        f"Calibration: {calibration.description}.",
        calibration.selection_text,
        None if tree is None else label_tree_metrics_as_text(tree),
    ]
    return "\n".join(sentence for sentence in sentences if sentence)


def format_metric_table(evaluations: Mapping[str, "Evaluation"], metrics: Sequence[str]) -> str:
    """Format a table of metrics with a column for each evaluation.

    Args:
        evaluations: Mapping from column title to evaluation. The confidence intervals and the noise
            floor are taken from the last evaluation.
        metrics: Keys of the metrics in the table.
    """
    from surelabel.report.metric_descriptions import (
        describe_metric,
        format_described_metric_value,
        sort_by_metric_descriptions,
    )

    *_, last = evaluations.values()
    interval_column = ["95 % interval"] * bool(last.intervals)
    rows = []
    for metric in sort_by_metric_descriptions(metrics):
        description = describe_metric(metric)
        unit = description.unit
        values = [
            format_described_metric_value(e.summary.get(metric), unit) for e in evaluations.values()
        ]
        interval = [format_metric_table_interval(last, metric, unit) for _ in interval_column]
        noise_floor = format_described_metric_value(last.noise_floor.get(metric), unit)
        rows.append([description.title, *values, *interval, noise_floor, unit])
    header = ["metric", *evaluations, *interval_column, "noise floor", "unit"]
    return format_terminal_table(header, rows)


def format_metric_table_interval(evaluation: "Evaluation", metric: str, unit: str) -> str:
    """Format the bounds of a confidence interval, or a dash if the interval was not computed.

    Args:
        evaluation: Evaluation with the interval.
        metric: Key of the metric.
        unit: Unit of the metric, such as ``%``.
    """
    from surelabel.report.metric_descriptions import NOT_MEASURED, format_described_metric_value

    interval = evaluation.intervals.get(metric)
    if interval is None:
        return NOT_MEASURED
    low, high = (
        format_described_metric_value(interval.low, unit),
        format_described_metric_value(interval.high, unit),
    )
    return f"{low.removesuffix(' %')} to {high}"
