"""Markdown tables of what a comparison found."""

from collections.abc import Sequence
from statistics import stdev

from surelabel.bench.calibrated.heads import HEADS
from surelabel.bench.calibrated.plan import SHOWN
from surelabel.bench.calibrated.published import COLUMNS, PUBLISHED
from surelabel.bench.calibrated.results import Comparison, Results, Row
from surelabel.bench.markdown import digits, name_of, table, told_apart, unit_of
from surelabel.metrics import Interval

DIFFERENCES = ("brier_skill", "log_loss", "mean_average_precision", "ace", "ece")


def rows_table(results: Results) -> str:
    """A line a row: mean ± standard deviation over fits, and what chance gives."""
    lines = []
    for row in results.rows:
        title = f"**{row.title}**" if row.title in results.near_best else row.title
        lines.append([title, *(_cell(row, metric) for metric in SHOWN)])
    return table(["", *(_head(metric) for metric in SHOWN)], lines)


def chosen_table(results: Results) -> str:
    """What validation chose for each head."""
    lines = []
    for key, head in HEADS.items():
        chosen = next(row.chosen for row in results.rows if row.head == key)
        weight = chosen.get("regularizer_weight")
        numbers = (chosen["learning_rate"], chosen["weight_decay"], weight)
        lines.append([head.title, *("" if v is None else f"{v:g}" for v in numbers)])
    return table(["", "Step size", "Weight decay", "λ of LPR"], lines)


def comparisons_table(comparisons: Sequence[Comparison]) -> str:
    """A line a difference: over fits, and over test pictures where that was drawn."""
    lines = []
    for one in comparisons:
        cells = []
        for metric in DIFFERENCES:
            both = (one.over_seeds.get(metric), one.over_pictures.get(metric))
            cells.append(" / ".join(_interval(found, metric) for found in both if found))
        lines.append([f"{one.first} − {one.second}", *cells])
    heads = [f"{name_of(m)} ({unit_of(m).replace('%', 'points')})" for m in DIFFERENCES]
    return table(["", *heads], lines)


def sensitivity_table(results: Results) -> str:
    """A line a setting of SPA."""
    metrics = [m for m in results.sensitivity[0] if m not in ("setting", "value")]
    lines = [
        [f"{e['setting']} = {e['value']:g}", *(digits(e[m], m) for m in metrics)]
        for e in results.sensitivity
    ]
    return table(["", *(f"{name_of(m)} ({unit_of(m)})" for m in metrics)], lines)


def retrieval_table(results: Results) -> str:
    """A line a row, a column a length, with standard errors where queries were drawn."""
    some = next(iter(results.retrieval.values()))
    lines = [
        [title, *map(_with_error, found["map"], found["error"])]
        for title, found in results.retrieval.items()
    ]
    lines.append(["queries judged", *(f"{n:,}" for n in some["judged"])])
    lines.append(["empty, left out", *(f"{n:,}" for n in some["empty"])])
    return table(["mAP (%) of queries of length", *map(str, some["length"])], lines)


def published_tables() -> str:
    """The paper's tables, as published."""
    parts = []
    for title, rows in PUBLISHED.items():
        lines = [[name, *(f"{v:.1f}" for v in values)] for name, values in rows.items()]
        parts.append(f"### Published: {title}\n\n{table(['', *COLUMNS], lines)}")
    return "\n\n".join(parts)


def _head(metric: str) -> str:
    return f"{name_of(metric)} ({unit_of(metric)})"


def _cell(row: Row, metric: str) -> str:
    text, floor = digits(row.mean(metric), metric), f"{metric}_by_chance"
    if len(row.values[metric]) > 1:
        text += f" ± {digits(stdev(row.values[metric]), metric)}"
    return f"{text} [{digits(row.mean(floor), metric)}]" if floor in row.values else text


def _interval(found: Interval, metric: str) -> str:
    low, high = digits(found.low, metric), digits(found.high, metric)
    text = f"{digits(found.value, metric)} ({low} to {high})"
    return f"**{text}**" if told_apart(found) else text


def _with_error(mean: float, error: float) -> str:
    text = f"{100 * mean:.2f}"
    return f"{text} ± {100 * error:.2f}" if error > 0 else text
