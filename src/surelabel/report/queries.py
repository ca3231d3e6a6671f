"""How well whole questions are answered: mAP against their length, and some of them in pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.records import Array
from surelabel.report.drawing import BLUE, TEXT, Plot, drawn, sheet, style
from surelabel.report.gallery import HIT_SIDE, picture, told
from surelabel.report.markup import Markup, element, joined
from surelabel.report.meanings import shown
from surelabel.retrieval.examples import Ranking
from surelabel.retrieval.precision import QueryPrecision

ANSWERED = 8  # pictures shown of each question


@dataclass(frozen=True)
class Answer:
    """A question whose true answer is known.

    Attributes:
        query: As it was asked, such as ``fork & apple & !knife``.
        paths: The pictures ranked first.
        right: Whether the question truly holds of each of them.
        relevant: Pictures of the whole collection of which it does.
        precision: Its average precision over all pictures, NaN where undefined.
    """

    query: str
    paths: Sequence[str]
    right: Sequence[bool]
    relevant: int
    precision: float


@dataclass(frozen=True)
class Retrieval:
    """Average precision of conjunctions, by their number of labels.

    Attributes:
        lengths: Labels in a query, rising, k of them.
        precision: Mean average precision of each length, in [0, 1], NaN where undefined.
        queries: Queries judged of each length.
        empty: Queries of each length that no picture fulfils; they are left out.
        answers: Some queries with their pictures.
        error: Standard error of each precision, 0 where every query was judged; empty where it
            is not known.
    """

    lengths: Sequence[int]
    precision: Sequence[float]
    queries: Sequence[int]
    empty: Sequence[int]
    answers: Sequence[Answer] = ()
    error: Sequence[float] = ()


def retrieval_of(
    precision: QueryPrecision, rankings: Sequence[Ranking] = (), paths: Sequence[str] = ()
) -> Retrieval:
    """What the retrieval protocol measured, ready to be shown.

    Args:
        precision: Of ``mean_average_precision_of_queries``.
        rankings: Of ``examples``.
        paths: The pictures, in the order of the rows of both.
    """
    answers = [
        Answer(
            ranking.query,
            [paths[row] for row in ranking.rows],
            [bool(right) for right in ranking.relevant],
            ranking.fulfilled,
            ranking.precision,
        )
        for ranking in rankings
    ]
    lengths = [point.length for point in precision.curve]
    return Retrieval(
        lengths=lengths,
        precision=[point.mean for point in precision.curve],
        queries=[precision.queries[length] for length in lengths],
        empty=[precision.skipped[length] for length in lengths],
        answers=answers,
        error=[point.error for point in precision.curve],
    )


def query_plot(retrieval: Retrieval) -> Plot:
    """mAP against query length."""
    rows = zip(
        retrieval.lengths, retrieval.precision, retrieval.queries, retrieval.empty, strict=True
    )
    lines = [
        f"{_labels(length)}: mAP {shown(value, '%')} over {judged:,} queries, {empty:,} empty"
        for length, value, judged, empty in rows
    ]
    return Plot(
        "queries",
        "Short and long queries",
        f"Mean average precision against the number of labels in a query. {'; '.join(lines)}.",
        "A query names labels that must be there, at least one, and labels that must not. All "
        "pictures are ranked by the probability that all of it holds. Queries that no picture "
        "fulfils cannot be judged and are left out; how many they are stands in the table.",
        _line(np.asarray(retrieval.lengths), np.asarray(retrieval.precision, float)),
    )


def query_table(retrieval: Retrieval) -> Markup:
    """The numbers of the plot, with how many queries were judged and how many were empty."""
    heads = ("labels in the query", "mAP", "standard error", "queries judged", "empty, left out")
    errors: Sequence[float | None] = retrieval.error or [None] * len(retrieval.lengths)
    rows = zip(
        retrieval.lengths,
        retrieval.precision,
        errors,
        retrieval.queries,
        retrieval.empty,
        strict=True,
    )
    body = [
        element(
            "tr",
            element("th", str(length), scope="row"),
            element("td", shown(value, "%")),
            element("td", shown(error, "%")),
            element("td", f"{judged:,}"),
            element("td", f"{empty:,}"),
        )
        for length, value, error, judged, empty in rows
    ]
    head = element("thead", element("tr", *(element("th", h, scope="col") for h in heads)))
    table = element("table", head, element("tbody", *body))
    return element("div", table, class_="wide", role="region", aria_label="Queries", tabindex="0")


def answered(answers: Sequence[Answer]) -> Markup:
    """Each question with the pictures ranked first, and whether it holds of them."""
    return joined(*map(_answer, answers))


def _answer(answer: Answer) -> Markup:
    first = answer.right[:ANSWERED]
    about = (
        f"Holds of {sum(first)} of these {len(first)}, and of {answer.relevant:,} pictures in all; "
        f"average precision {shown(answer.precision, '%')}."
    )
    cards = [_card(p, bool(r)) for p, r in zip(answer.paths[:ANSWERED], first, strict=True)]
    return joined(
        element("h3", element("code", answer.query)),
        element("p", about, class_="soft"),
        element("div", *cards, class_="pictures small"),
    )


def _card(path: str, right: bool) -> Markup:
    return element(
        "div",
        picture(path, side=HIT_SIDE),
        told(right),
        element("div", path, class_="path"),
        class_="card",
    )


def _line(lengths: Array, precision: Array) -> bytes:
    figure = sheet(3.8)
    axes = figure.subplots()
    style(axes)
    axes.plot(lengths, 100 * precision, "o-", color=BLUE)
    for x, value in zip(lengths, 100 * precision, strict=True):
        if not np.isnan(value):
            axes.annotate(
                f"{value:.1f}",
                (x, value),
                (0, 7),
                textcoords="offset points",
                ha="center",
                color=TEXT,
                fontsize=8.5,
            )
    axes.set(xlabel="labels in the query", ylabel="mAP, %", ylim=(0, 108))
    axes.set_xticks(lengths)
    axes.margins(x=0.08)
    return drawn(figure, left=0.13, bottom=0.15, top=0.97)


def _labels(length: int) -> str:
    return f"{length} label" if length == 1 else f"{length} labels"
