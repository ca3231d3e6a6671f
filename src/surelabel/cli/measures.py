"""Evaluations as tables in a terminal."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from surelabel.cli.terminal import table

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation

HONESTY = ("brier_skill", "log_loss", "ece")


def as_value(evaluation: "Evaluation") -> dict[str, Any]:
    """What ``--json`` prints of an evaluation: all that was measured."""
    return {
        "pictures": len(evaluation.predictions),
        "calibration": evaluation.predictions.calibration,
        "summary": evaluation.summary,
        "intervals": {name: asdict(found) for name, found in evaluation.intervals.items()},
        "floor": evaluation.floor,
        "class_means": evaluation.class_means,
        "class_floor": evaluation.class_floor,
        "undefined": evaluation.undefined,
    }


def as_text(evaluation: "Evaluation") -> str:
    """The metrics that everybody should see, and for how many labels each of them is undefined."""
    from surelabel.report.meanings import MAIN, MEANINGS, in_order, meaning_of

    said = evaluation.predictions
    main = [m for m in in_order(evaluation.summary) if m in list(MEANINGS)[:MAIN]]
    counts = [
        f"{meaning_of(m).title} {evaluation.undefined[m]}"
        for m in main
        if evaluation.undefined.get(m)
    ]
    rest = len(evaluation.summary) - len(main)
    lines = [
        f"{len(said)} pictures, {len(said.names)} labels; "
        + (
            f"calibrated: {said.calibration}."
            if said.calibration
            else "scores only, nothing calibrated."
        ),
        metric_table({"value": evaluation}, main),
        f"Labels where a metric is undefined: {', '.join(counts) or 'none'}.",
    ]
    lines += [f"{rest} more metrics: --json prints them, --report shows them."] if rest else []
    return "\n".join(lines)


def metric_table(evaluations: dict[str, "Evaluation"], metrics: Sequence[str]) -> str:
    """Some metrics of some evaluations side by side, with what is known of the last one: where it
    would lie for other pictures, and what chance alone gives.
    """
    from surelabel.report.meanings import in_order, meaning_of, shown

    *_, last = evaluations.values()
    spread = ["95 % interval"] * bool(last.intervals)
    rows = []
    for metric in in_order(metrics):
        meaning = meaning_of(metric)
        values = [shown(e.summary.get(metric), meaning.unit) for e in evaluations.values()]
        ends = [interval(last, metric, meaning.unit) for _ in spread]
        chance = shown(last.floor.get(metric), meaning.unit)
        rows.append([meaning.title, *values, *ends, chance, meaning.unit])
    return table(["metric", *evaluations, *spread, "chance alone", "unit"], rows)


def interval(evaluation: "Evaluation", metric: str, unit: str) -> str:
    """Both ends; a dash where none was taken."""
    from surelabel.report.meanings import NOTHING, shown

    found = evaluation.intervals.get(metric)
    if found is None:
        return NOTHING
    return f"{shown(found.low, unit).removesuffix(' %')} to {shown(found.high, unit)}"
