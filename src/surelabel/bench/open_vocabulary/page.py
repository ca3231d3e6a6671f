"""Results as Markdown and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite, isnan
from statistics import stdev
from typing import Any

from surelabel.bench.markdown import table
from surelabel.bench.open_vocabulary.conclusions import apart, conclusions, percent
from surelabel.bench.open_vocabulary.plan import PROMPTED, REFERENCE
from surelabel.bench.open_vocabulary.published import PUBLISHED
from surelabel.bench.open_vocabulary.results import Results
from surelabel.bench.open_vocabulary.rows import Row

INTRODUCTION = (
    "{train:,} training pictures with labels of {seen} seen names; {removed:,} others were removed "
    "because an unseen name is in them. {validation:,} pictures calibrate, one Platt scaling for "
    "all names, by seen labels alone; {test:,} are measured on, by all labels. Zero-shot (ZSL): "
    "{unseen} unseen names in the {zsl:,} pictures that have one. Generalised (GZSL): all names, "
    "{gzsl:,} pictures. Every picture is asked for all names at once. Names in no picture: "
    "{zsl_empty} and {gzsl_empty}, so that mAP with them as 0 and without them {same}."
)
RANKS = (
    "Means of {seeds} seeds, ± their standard deviation. In the head what a perfect ranking "
    "reaches; an mAP reaches 100. In the last column F1@3 as published, one run: ZSL and GZSL on "
    "NUS-WIDE, then on COCO."
)
DIFFERENCES = (
    "The same as differences to **{reference}**, in points: first the 95 % interval over seeds, "
    "then over test pictures, both paired. Bold: both leave out 0."
)
HONESTY = (
    "Probabilities: ECE, in brackets what right probabilities show by chance, and Brier skill, of "
    "names that were never learnt beside those that were."
)
COSTS = (
    "What it costs (table 12): pictures a second of one core, in training from cached features, in "
    "use with the encoder; peak memory above what is held before, each row in a process of its "
    "own; {timed} pictures."
)
EXCHANGE = (
    "Other names beside the {seen} old ones, after training, without any of it: what becomes of "
    "the old ones on {exchanged:,} test pictures, calibrated once, when there were no others."
)
HEADS = ("F1@3", "F1@5", "mAP")
COMPARED = ("zsl_map", "zsl_f1_at_3", "gzsl_map", "gzsl_f1_at_3", "unseen_ece", "seen_ece")
TITLES = ("ZSL mAP", "ZSL F1@3", "GZSL mAP", "GZSL F1@3", "unseen ECE", "seen ECE")


def markdown(results: Results) -> str:
    """The whole page."""
    return "\n\n".join(_parts(results)) + "\n"


def as_json(results: Results) -> dict[str, Any]:
    """The same numbers for machines; what is undefined is null."""
    return {key: _plain(value) for key, value in asdict(results).items()}


def _parts(results: Results) -> Iterator[str]:
    seeds = results.plan.seeds
    filled = [results.reference.mean(f"{part}_map_filled") for part in ("zsl", "gzsl")]
    whole = [results.reference.mean(f"{part}_map") for part in ("zsl", "gzsl")]
    yield f"## {results.pictures}"
    same = "are the same" if filled == whole else "differ; here it is without them"
    yield INTRODUCTION.format(**results.counts, same=same)
    yield "\n".join(f"- {sentence}" for sentence in conclusions(results))
    yield f"{RANKS.format(seeds=seeds)} {HONESTY} {DIFFERENCES.format(reference=REFERENCE)}"
    for heading, rows in results.tables.items():
        yield f"### {heading}"
        yield table(_heads(results), [_ranked(row, heading) for row in rows])
        yield table(
            ["", "unseen ECE (%)", "seen ECE (%)", "unseen Brier skill (%)", "seen (%)"],
            [_honest(row) for row in rows],
        )
        yield table(["", *TITLES], [_compared(row) for row in rows if row.differences])
    yield "### Speed and memory"
    yield COSTS.format(timed=results.plan.timed)
    yield table(
        ["", "learnt parameters", "training", "use", "training (MiB)", "share", "use (MiB)"],
        [_cost(one, results.costs) for one in results.costs],
    )
    yield "### Exchanging the label set"
    yield EXCHANGE.format(seen=results.counts["seen"], exchanged=results.plan.exchanged)
    yield table(
        [
            *("names added", "known to the encoder", "ECE before (%)", "largest change (points)"),
            *("log-odds moved, median", "95th percentile", "mAP before, after (%)"),
        ],
        [_exchanged(one) for one in results.exchange],
    )
    spent = sum(sum(row.seconds) for row in _distinct(results))
    yield f"Recognizers took {spent / 60:.1f} minutes of one core."


def _heads(results: Results) -> list[str]:
    heads = []
    for part in ("zsl", "gzsl"):
        tops = [f" of {100 * results.ceilings[f'{part}_f1_at_{k}']:.1f}" for k in (3, 5)]
        for head, top in zip(HEADS, [*tops, ""], strict=True):
            heads.append(f"{part.upper()} {head}{top} (%)")
    return ["", *heads, "paper, F1@3 (%)"]


def _ranked(row: Row, heading: str) -> list[str]:
    cells = [
        f"{percent(row, f'{part}_{name}')}{_spread(row, f'{part}_{name}')}"
        for part in ("zsl", "gzsl")
        for name in ("f1_at_3", "f1_at_5", "map")
    ]
    paper = PUBLISHED.get(heading, {}).get(row.title, ())
    shown = ", ".join("–" if isnan(value) else f"{value:.1f}" for value in paper)
    return [row.title, *cells, shown]


def _honest(row: Row) -> list[str]:
    errors = [
        f"{100 * row.mean(f'{side}_ece'):.2f}{_spread(row, f'{side}_ece', 2)} "
        f"[{100 * row.mean(f'{side}_ece_by_chance'):.2f}]"
        for side in ("unseen", "seen")
    ]
    skills = [
        f"{percent(row, f'{side}_brier_skill')}{_spread(row, f'{side}_brier_skill')}"
        for side in ("unseen", "seen")
    ]
    return [row.title, *errors, *skills]


def _compared(row: Row) -> list[str]:
    cells = [row.title]
    for name in COMPARED:
        found = row.differences[name]
        shown = apart(found, places=2 if name.endswith("ece") else 1)
        cells.append(f"**{shown}**" if found.told_apart else shown)
    return cells


def _cost(one: dict[str, Any], every: list[dict[str, Any]]) -> list[str]:
    most = next(other for other in every if other["title"] == PROMPTED)["train_memory"]
    return [
        one["title"],
        f"{one['parameters']:,.0f}",
        f"{one['train']:.0f}",
        f"{one['test']:.0f}",
        f"{one['train_memory']:.0f}",
        f"{100 * one['train_memory'] / most:.0f} %",
        f"{one['test_memory']:.0f}",
    ]


def _exchanged(one: dict[str, Any]) -> list[str]:
    return [
        f"{one['names']:,}",
        f"{one['met']:.0f}",
        f"{100 * one['ece']:.2f}",
        f"{100 * one['moved']:+.2f}",
        f"{one['logits']:.2f}",
        f"{one['most']:.2f}",
        f"{100 * one['map_before']:.1f}, {100 * one['map']:.1f}",
    ]


def _distinct(results: Results) -> list[Row]:
    """Rows of all tables, each once: those of one kind took exactly the same time."""
    every = [row for rows in results.tables.values() for row in rows]
    seconds = [row.seconds for row in every]
    return [row for place, row in enumerate(every) if row.seconds not in seconds[:place]]


def _spread(row: Row, metric: str, places: int = 1) -> str:
    values = row.values[metric]
    return f" ± {100 * stdev(values):.{places}f}" if len(values) > 1 else ""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
