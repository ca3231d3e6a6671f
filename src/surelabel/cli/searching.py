"""Searches held against the truth: options of ``surelabel evaluate``, and what is printed."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Terminal, table

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation, Searched
    from surelabel.recognizer import Recognizer
    from surelabel.report import Retrieval, Search

Command = Callable[..., None]
LOOKED_AT = 10  # pictures of each search
SHORT = 3  # labels in a query of which all are judged
OPTIONS = (
    click.option(
        "--search",
        "queries",
        multiple=True,
        metavar="QUERY",
        help='Search the pictures, as in "dog & !cat", and say how many of the first 10 are right; '
        "may be given several times.",
    ),
    click.option(
        "--retrieval",
        is_flag=True,
        help="Ask for all combinations of wanted and unwanted labels, and say how well they are "
        "found.",
    ),
    click.option(
        "--up-to",
        type=click.IntRange(1, 5),
        metavar="LABELS",
        help=f"Of so many labels each for --retrieval; 4 and 5 are sampled. [{SHORT}]",
    ),
)


def search_options(function: Command) -> Command:
    """The options that ask for searches."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def check_searches(
    recognizer: "Recognizer", queries: Sequence[str], retrieval: bool, up_to: int | None
) -> None:
    """Refuse, before any work is done, what cannot be searched for."""
    from surelabel.errors import NotFitted
    from surelabel.retrieval import parse
    from surelabel.retrieval.query import resolve

    if up_to is not None and not retrieval:
        raise click.UsageError("--up-to says how long the queries of --retrieval are; give both.")
    for query in queries:
        resolve(parse(query), recognizer.names)
    if (queries or retrieval) and not recognizer.calibrated_on:
        raise NotFitted(
            "A search for several labels needs probabilities, and nothing calibrated this "
            "recognizer. Calibrate it on labelled pictures first (`surelabel calibrate`)."
        )


def searched(evaluation: "Evaluation", queries: Sequence[str]) -> "list[Searched]":
    """Every query, held against the truth."""
    from surelabel.evaluation import search_labelled

    return [search_labelled(evaluation, query, k=LOOKED_AT) for query in queries]


def retrieved(terminal: Terminal, evaluation: "Evaluation", up_to: int | None) -> "Retrieval":
    """How well all queries up to a length are answered, with some of them."""
    import numpy as np

    from surelabel.report import retrieval_of
    from surelabel.retrieval.examples import examples
    from surelabel.retrieval.protocol import mean_average_precision_of_queries

    said = evaluation.predictions
    given = np.asarray(said.logits), evaluation.targets  # there are log-odds: it was checked
    with terminal.progress("Asking") as progress:
        found = mean_average_precision_of_queries(
            *given,
            evaluation.known,
            most_literals=up_to or SHORT,
            seed=terminal.seed or 0,
            progress=progress,
        )
    shown = examples(*given, said.names, evaluation.known, seed=terminal.seed or 0)
    return retrieval_of(found, shown, said.paths)


def for_report(found: "Sequence[Searched]") -> "list[Search]":
    """The same as a report shows it."""
    from surelabel.report import Search

    return [Search(s.query, s.hits, s.right, s.prevalence) for s in found]


def as_value(found: "Sequence[Searched]", retrieval: "Retrieval | None") -> dict[str, Any]:
    """What ``--json`` prints of them; nothing of what nobody asked for."""
    searches = [
        {
            "query": s.query,
            "precision": s.precision,
            "prevalence": s.prevalence,
            "average_precision": s.average_precision,
            "pictures": s.pictures,
            "fulfilled": s.fulfilled,
            "hits": [
                {"path": h.path, "probability": h.probability, "terms": h.terms, "right": r}
                for h, r in zip(s.hits, s.right, strict=True)
            ],
        }
        for s in found
    ]
    value: dict[str, Any] = {"searches": searches} if searches else {}
    return value | ({"retrieval": asdict(retrieval)} if retrieval else {})


def as_text(found: "Sequence[Searched]", retrieval: "Retrieval | None") -> list[str]:
    """A table of precision beside prevalence, and one of mAP against the length of queries."""
    from surelabel.report.meanings import shown

    rows = [
        [
            shown(s.precision, "%"),
            shown(s.prevalence, "%"),
            shown(s.average_precision, "%"),
            f"{s.fulfilled} of {s.pictures}",
            s.query,
        ]
        for s in found
    ]
    heads = [f"precision at {LOOKED_AT}", "prevalence", "average precision", "true of", "search"]
    tables = [table(heads, rows)] if rows else []
    return [f"\n{t}" for t in [*tables, *([by_length(retrieval)] if retrieval else [])]]


def by_length(retrieval: "Retrieval") -> str:
    """A line for each number of labels."""
    from surelabel.report.meanings import shown

    rows = [
        [length, shown(mean, "%"), shown(error, "%"), queries, empty]
        for length, mean, error, queries, empty in zip(
            retrieval.lengths,
            retrieval.precision,
            retrieval.error,
            retrieval.queries,
            retrieval.empty,
            strict=True,
        )
    ]
    heads = [
        "labels in a query",
        "mAP",
        "standard error",
        "queries",
        "true of no picture, left out",
    ]
    return table(heads, rows)
