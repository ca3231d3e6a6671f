"""Results as Markdown and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from statistics import stdev
from typing import Any

from surelabel.bench.label_free.results import Results
from surelabel.bench.label_free.rows import Row
from surelabel.bench.label_free.students import Variant
from surelabel.bench.markdown import table

RANKS = (
    "Mean average precision over labels (mAP@y) with the 95 % interval over test pictures, and its "
    "gain over **{best}**, the one-pass row that validation prefers. mAP@x: over the labels of a "
    "picture. Main and others: with as many labels shown as are there, the share found of main "
    "objects and of all others. ± is over seeds: draws of crops, or students."
)
HONESTY = (
    "Probabilities without a label, each recognizer calibrated on the unlabelled pictures alone, "
    "judged by the labels of the test pictures; beside them Platt scaling of the same scores on "
    "100 labelled pictures, mean of 5 draws. In brackets the error of a perfectly calibrated "
    "recognizer. Labels: expected a picture, and there. F1: where as many labels are shown as are "
    "expected, and the best there is with one threshold."
)
COST = "A picture: encoder passes, multiplications and additions, and seconds of one core."
STAGES = (
    "Pseudo-labels of {count:,} unlabelled pictures against their hidden labels. Inversions: pairs "
    "of a present and an absent label of a picture, or pictures of a label, in the wrong order."
)
VARIANTS = (
    "Students of {count:,} unlabelled pictures, on the test pictures; {seeds} seeds, differences "
    "with 95 % intervals over seeds."
)


def markdown(results: Results) -> str:
    """The whole page of one archive."""
    return "\n\n".join(_parts(results)) + "\n"


def as_json(results: Results) -> dict[str, Any]:
    """The same numbers for machines; what is undefined is null."""
    return {key: _plain(value) for key, value in asdict(results).items()}


def _parts(results: Results) -> Iterator[str]:
    plan = results.plan
    yield f"## {results.pictures}"
    yield (
        f"{plan.unlabelled:,} pictures without labels to adapt to, {plan.test:,} to test, "
        f"{results.labels} labels."
    )
    yield "\n".join(f"- {sentence}" for sentence in conclusions(results))
    yield RANKS.format(best=results.best)
    yield table(
        ["", "mAP@y (%)", "gain (points)", "mAP@x (%)", "main (%)", "others (%)"],
        [_ranked(row) for row in results.rows],
    )
    yield HONESTY
    yield table(
        [
            *("", "Brier skill (%)", "ECE (%)", "log loss (nats)", "Platt: Brier skill, ECE (%)"),
            *("labels", "F1 (%), best"),
        ],
        [_honest(row) for row in results.rows],
    )
    yield COST
    yield table(
        ["", "learnt parameters", "passes", "GFLOP", "milliseconds"],
        [_cost(row) for row in results.rows],
    )
    yield STAGES.format(count=plan.taught)
    yield table(
        ["teacher", "stage", "mAP (%)", "inversions in pictures", "in labels"],
        [_stage(one) for one in results.stages],
    )
    yield VARIANTS.format(count=plan.taught, seeds=plan.students)
    yield table(
        ["", "student, mAP (%)", "its pseudo-labels", "difference (points)"],
        [_variant(one) for one in results.variants],
    )


def conclusions(results: Results) -> Iterator[str]:
    """What the issue of it is, in sentences that the numbers make."""
    metric = "mean_average_precision"
    first, best = results.row(results.best), results.best_untrained
    probe = results.row("linear probe, all labels")
    gap = probe.mean(metric) - first.mean(metric)
    closed = (best.mean(metric) - first.mean(metric)) / gap
    yield (
        f"Without training {best.title} ranks best, {_percent(best, metric)} % beside "
        f"{_percent(first, metric)} of {first.title} and {_percent(probe, metric)} of a linear "
        f"probe with all labels: {100 * closed:.0f} % of that gap."
    )
    yield (
        f"With as many labels shown as are there, {first.title} finds "
        f"{_percent(first, 'recall_of_main')} % of main objects and "
        f"{_percent(first, 'recall_of_others')} % of the others; {best.title} "
        f"{_percent(best, 'recall_of_main')} and {_percent(best, 'recall_of_others')} %."
    )
    usual = results.variants[0]
    yield (
        f"Taught by {results.plan.taught:,} pictures, the student reaches {_mean(usual)} % on test "
        f"pictures in one pass; its teacher's pseudo-labels of them {100 * usual.of_labels:.1f} %."
    )


def _ranked(row: Row) -> list[str]:
    low, high = (f"{100 * end:.1f}" for end in row.interval)
    gain = (
        ""
        if row.gain is None
        else "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * value for value in row.gain))
    )
    names = ("mean_average_precision_per_image", "recall_of_main", "recall_of_others")
    whole = f"{_percent(row, 'mean_average_precision')}{_spread(row)} ({low} to {high})"
    return [row.title, whole, gain, *(_percent(row, name) for name in names)]


def _honest(row: Row) -> list[str]:
    return [
        row.title,
        _percent(row, "brier_skill"),
        f"{100 * row.mean('ece'):.2f} [{100 * row.mean('ece_by_chance'):.2f}]",
        f"{row.mean('log_loss'):.4f}",
        f"{_percent(row, 'brier_skill_of_platt')}, {100 * row.mean('ece_of_platt'):.2f}",
        f"{row.mean('labels_shown'):.2f}, {row.mean('labels_there'):.2f}",
        f"{_percent(row, 'f1')}, {_percent(row, 'best_f1')}",
    ]


def _cost(row: Row) -> list[str]:
    return [
        row.title,
        f"{row.mean('parameters'):,.0f}",
        f"{row.mean('passes'):.1f}",
        f"{row.mean('flops') / 1e9:.2f}",
        f"{1000 * row.mean('seconds'):.1f}",
    ]


def _stage(one: dict[str, Any]) -> list[str]:
    counts = [one.get("within_pictures"), one.get("within_labels")]
    shown = ["" if count is None else f"{count:,.0f}" for count in counts]
    return [one["teacher"], one["stage"], f"{100 * one['map']:.2f}", *shown]


def _variant(one: Variant) -> list[str]:
    apart = one.difference
    shown = (
        ""
        if apart is None
        else f"{100 * apart.value:+.2f} ({100 * apart.low:+.2f} to {100 * apart.high:+.2f})"
    )
    return [one.title, _mean(one), f"{100 * one.of_labels:.1f}", shown]


def _mean(one: Variant) -> str:
    return f"{100 * sum(one.of_student) / len(one.of_student):.1f}"


def _percent(row: Row, metric: str) -> str:
    return f"{100 * row.mean(metric):.1f}"


def _spread(row: Row) -> str:
    values = row.values["mean_average_precision"]
    return f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
