"""Evaluations as tables in a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surelabel.cli.terminal import table

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation

HONESTY = ("brier_skill", "log_loss", "ece")


def as_value(evaluation: "Evaluation") -> dict[str, Any]:
    """What ``--json`` prints of an evaluation."""
    return {
        "pictures": len(evaluation.predictions),
        "calibration": evaluation.predictions.calibration,
        "summary": evaluation.summary,
        "floor": evaluation.floor,
        "class_means": evaluation.class_means,
        "class_floor": evaluation.class_floor,
        "undefined": evaluation.undefined,
    }


def as_text(evaluation: "Evaluation") -> str:
    """All metrics, and for how many labels each is undefined."""
    undefined = ", ".join(f"{metric} {n}" for metric, n in evaluation.undefined.items() if n)
    calibration = evaluation.predictions.calibration
    lines = [
        f"{len(evaluation.predictions)} pictures, {len(evaluation.predictions.names)} labels; "
        + (f"calibrated: {calibration}." if calibration else "scores only, nothing calibrated."),
        metric_table({"value": evaluation}, list(evaluation.summary)),
        f"Labels where a metric is undefined: {undefined or 'none'}.",
    ]
    return "\n".join(lines)


def metric_table(evaluations: dict[str, "Evaluation"], metrics: Sequence[str]) -> str:
    """Some metrics of some evaluations side by side, and what chance alone gives the last."""
    from surelabel.report.meanings import in_order, meaning_of, shown

    *_, last = evaluations.values()
    rows = []
    for metric in in_order(metrics):
        values = [e.summary.get(metric) for e in evaluations.values()] + [last.floor.get(metric)]
        meaning = meaning_of(metric)
        rows.append([meaning.title, *(shown(v, meaning.unit) for v in values), meaning.unit])
    return table(["metric", *evaluations, "chance alone", "unit"], rows)
