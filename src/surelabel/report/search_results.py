"""Render retrieval results in a report: mAP by query length, and example queries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.report.image_gallery import (
    HIT_SIDE,
    render_image_gallery_image,
    render_image_gallery_relevance,
)
from surelabel.report.image_paths import (
    common_image_folder,
    render_image_folder,
    render_image_path,
)
from surelabel.report.metric_descriptions import format_described_metric_value
from surelabel.report.plot_style import (
    BLUE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
)
from surelabel.retrieval.example_queries import ExampleQuery
from surelabel.retrieval.query_average_precision import QueryAveragePrecision

MAX_IMAGES = 8  # images of each example query


@dataclass(frozen=True)
class QueryRanking:
    """Example query with its highest-ranked images and their relevance.

    Attributes:
        query: Query, such as ``fork & apple & !knife``.
        paths: Paths of the highest-ranked images.
        is_relevant: True for each highest-ranked image that matches the query.
        n_relevant: Number of images of the whole dataset that match the query.
        average_precision: Average precision of the ranking of all images. If no image matches the
            query, the average precision is NaN.
    """

    query: str
    paths: Sequence[str]
    is_relevant: Sequence[bool]
    n_relevant: int
    average_precision: float


@dataclass(frozen=True)
class RetrievalResults:
    """Mean average precision of conjunctive queries by query length.

    Attributes:
        lengths: Query lengths (numbers of labels in a query), in increasing order.
        mean_average_precision: Mean average precision of the queries of each length, in [0, 1].
            Undefined values are NaN.
        queries: Number of evaluated queries of each length.
        unmatched_queries: Number of queries of each length that no image matches. These queries
            are not evaluated. If queries were sampled, the number is an estimate.
        examples: Example queries with their highest-ranked images.
        standard_error: Standard error of the mean average precision of each length. If all queries
            were evaluated, the value is 0. If the standard errors are unknown, the sequence is
            empty.
    """

    lengths: Sequence[int]
    mean_average_precision: Sequence[float]
    queries: Sequence[int]
    unmatched_queries: Sequence[int]
    examples: Sequence[QueryRanking] = ()
    standard_error: Sequence[float] = ()


def summarize_search_results(
    precision: QueryAveragePrecision,
    example_queries: Sequence[ExampleQuery] = (),
    paths: Sequence[str] = (),
) -> RetrievalResults:
    """Combine the metrics of conjunctive queries and example queries for a report.

    Args:
        precision: Result of ``mean_average_precision_of_conjunctions``.
        example_queries: Result of ``select_example_queries``.
        paths: Paths of all images, length n. The rows of the example queries are indices of this
            sequence.
    """
    examples = [
        QueryRanking(
            query=example.query,
            paths=[paths[row] for row in example.rows],
            is_relevant=[bool(is_relevant) for is_relevant in example.is_relevant],
            n_relevant=example.n_relevant,
            average_precision=example.average_precision,
        )
        for example in example_queries
    ]
    lengths = [point.length for point in precision.curve]
    return RetrievalResults(
        lengths=lengths,
        mean_average_precision=[point.mean for point in precision.curve],
        queries=[precision.queries[length] for length in lengths],
        unmatched_queries=[precision.skipped[length] for length in lengths],
        examples=examples,
        standard_error=[point.standard_error for point in precision.curve],
    )


def plot_search_results_by_query_length(results: RetrievalResults) -> Plot:
    """Plot the mean average precision of queries against the number of labels in a query."""
    rows = zip(
        results.lengths,
        results.mean_average_precision,
        results.queries,
        results.unmatched_queries,
        strict=True,
    )
    lines = [
        f"{_search_results_query_length_text(length)}: mAP "
        f"{format_described_metric_value(value, '%')} over "
        f"{format_count(evaluated, 'query', 'queries')} ({unmatched:,} more without a matching "
        "image)"
        for length, value, evaluated, unmatched in rows
    ]
    return Plot(
        "map_by_query_length",
        "mAP by query length",
        f"Mean average precision by the number of labels in a query. {'; '.join(lines)}.",
        "A query has at least one wanted label, and may have unwanted labels. All images are "
        "ranked by the probability that they match the whole query. Queries without a matching "
        "image are omitted; the table shows their number.",
        _draw_search_results_curve(
            np.asarray(results.lengths), np.asarray(results.mean_average_precision, float)
        ),
    )


def search_results_table(results: RetrievalResults) -> Markup:
    """Return an HTML table of mAP, standard error and number of queries for each length."""
    header = (
        "labels in the query",
        "mAP",
        "standard error",
        "evaluated queries",
        "queries without a matching image",
    )
    errors: Sequence[float | None] = results.standard_error or [None] * len(results.lengths)
    columns = zip(
        results.lengths,
        results.mean_average_precision,
        errors,
        results.queries,
        results.unmatched_queries,
        strict=True,
    )
    rows = [
        markup_element(
            "tr",
            markup_element("th", str(length), scope="row"),
            markup_element("td", format_described_metric_value(value, "%")),
            markup_element("td", format_described_metric_value(error, "%")),
            markup_element("td", f"{evaluated:,}"),
            markup_element("td", f"{unmatched:,}"),
        )
        for length, value, error, evaluated, unmatched in columns
    ]
    return markup_table_region("Queries", markup_header_cells(header), rows)


def render_search_results_examples(examples: Sequence[QueryRanking]) -> Markup:
    """Return example queries with their highest-ranked images and their relevance as HTML."""
    folder = common_image_folder(path for example in examples for path in example.paths)
    cards = (_render_search_results_example(example, folder) for example in examples)
    return join_markup(render_image_folder(folder), *cards)


def _render_search_results_example(example: QueryRanking, folder: str) -> Markup:
    relevance = example.is_relevant[:MAX_IMAGES]
    summary = (
        f"{sum(relevance)} of these {len(relevance)} images match the query. Of all images, "
        f"{example.n_relevant:,} match the query. The average precision is "
        f"{format_described_metric_value(example.average_precision, '%')}."
    )
    cards = [
        _search_results_image_card(path, example.query, bool(is_relevant), folder)
        for path, is_relevant in zip(example.paths[:MAX_IMAGES], relevance, strict=True)
    ]
    return join_markup(
        markup_element("h3", markup_element("code", example.query)),
        markup_element("p", summary, class_="soft"),
        markup_element("div", *cards, class_="images small"),
    )


def _search_results_image_card(path: str, query: str, is_relevant: bool, folder: str) -> Markup:
    alt = f"{'matches' if is_relevant else 'does not match'} the query {query}"
    return markup_element(
        "div",
        render_image_gallery_image(path, alt, side=HIT_SIDE),
        render_image_gallery_relevance(is_relevant),
        render_image_path(path, folder),
        class_="card",
    )


def _draw_search_results_curve(lengths: Array, mean_average_precision: Array) -> bytes:
    figure = new_figure_in_plot_style(3.8)
    axes = figure.subplots()
    apply_plot_style_to_axes(axes)
    percent = 100 * mean_average_precision
    axes.plot(lengths, percent, "o-", color=BLUE)
    for x, value in zip(lengths, percent, strict=True):
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
    return plot_style_figure_to_png(figure, left=0.13, bottom=0.15, top=0.97)


def _search_results_query_length_text(length: int) -> str:
    return format_count(length, "label")
