"""Define options of ``evaluate`` for searches and retrieval metrics, and format the results."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command, Terminal
from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation, SearchEvaluation
    from surelabel.report import QueryHits, RetrievalResults

N_HITS = 10  # images of each search
DEFAULT_MAX_LITERALS = 3  # labels per query; all queries of this length are evaluated
OPTIONS = (
    click.option(
        "--search",
        "queries",
        multiple=True,
        metavar="QUERY",
        help='Search the images with a query such as "dog & !cat", and report the precision of '
        f"the first {N_HITS} hits. The option may be repeated.",
    ),
    click.option(
        "--retrieval",
        is_flag=True,
        help="Compute the retrieval mAP of queries that combine wanted and unwanted labels.",
    ),
    click.option(
        "--max-literals",
        type=click.IntRange(1, 5),
        metavar="N",
        help="Maximum number of labels in a query of --retrieval; queries of 4 and 5 labels are "
        f"sampled. [{DEFAULT_MAX_LITERALS}]",
    ),
)


def search_evaluation_options(function: Command) -> Command:
    """Add the options for searches and retrieval metrics."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def check_search_evaluation_options(
    names: Sequence[str],
    calibration: str | None,
    queries: Sequence[str],
    retrieval: bool,
    max_literals: int | None,
) -> None:
    """Check the options for searches and retrieval metrics, before any image is encoded.

    Args:
        names: Labels of the recognizer or the predictions, length c.
        calibration: Description of the calibration, or None.
        queries: Values of the option ``--search``.
        retrieval: True if ``--retrieval`` is given.
        max_literals: Value of the option ``--max-literals``.

    Raises:
        UsageError: If ``--max-literals`` is given without ``--retrieval``.
        InputError: If a query is invalid, or contains sentences or filters.
        UnknownName: If a query contains a label that is not in ``names``.
        NotFitted: If there is no calibration.
    """
    from surelabel.errors import NotFitted
    from surelabel.retrieval import parse
    from surelabel.retrieval.query_resolution import resolve_label_query

    if max_literals is not None and not retrieval:
        raise click.UsageError(
            "--max-literals requires --retrieval; got only --max-literals. Add --retrieval."
        )
    for query in queries:
        resolve_label_query(parse(query), names)
    if (queries or retrieval) and not calibration:
        raise NotFitted(
            "--search and --retrieval require probabilities; got scores that are not calibrated. "
            "Calibrate the recognizer on annotated images first (`surelabel calibrate`)."
        )


def run_search_evaluation(
    evaluation: "Evaluation", queries: Sequence[str]
) -> "list[SearchEvaluation]":
    """Search the evaluated images with each query, and compute the precision of the first hits."""
    from surelabel.evaluation import evaluate_search_precision

    return [evaluate_search_precision(evaluation, query, k=N_HITS) for query in queries]


def run_retrieval_search_evaluation(
    terminal: Terminal, evaluation: "Evaluation", max_literals: int | None
) -> "RetrievalResults":
    """Compute the mAP of queries for each number of labels, and select example queries.

    Args:
        terminal: Object that prints results, status lines and progress.
        evaluation: Evaluation of calibrated predictions.
        max_literals: Maximum number of labels in a query. If None, the maximum is three labels.
    """
    import numpy as np

    from surelabel.report import summarize_search_results
    from surelabel.retrieval.conjunction_map import mean_average_precision_of_conjunctions
    from surelabel.retrieval.example_queries import select_example_queries

    predictions, seed = evaluation.predictions, terminal.seed or 0
    logits = np.asarray(predictions.logits)  # calibrated predictions have logits
    with terminal.progress("Evaluating", "queries") as progress:
        precision = mean_average_precision_of_conjunctions(
            logits,
            evaluation.targets,
            evaluation.known,
            max_literals=max_literals or DEFAULT_MAX_LITERALS,
            seed=seed,
            progress=progress,
        )
    example_queries = select_example_queries(
        logits, evaluation.targets, predictions.names, evaluation.known, seed=seed
    )
    return summarize_search_results(precision, example_queries, predictions.paths)


def search_evaluation_for_report(searches: "Sequence[SearchEvaluation]") -> "list[QueryHits]":
    """Convert evaluated searches to the format of a report."""
    from surelabel.report import QueryHits

    return [QueryHits(s.query, s.hits, s.is_relevant, s.prevalence) for s in searches]


def search_evaluation_as_json(
    searches: "Sequence[SearchEvaluation]", retrieval: "RetrievalResults | None"
) -> dict[str, Any]:
    """Return searches and retrieval metrics for ``--json``, without empty entries."""
    value: dict[str, Any] = {}
    if searches:
        value["searches"] = [
            {
                "query": search.query,
                "precision": search.precision,
                "prevalence": search.prevalence,
                "average_precision": search.average_precision,
                "images": search.images,
                "relevant_images": search.relevant_images,
                "hits": [
                    {
                        "path": hit.path,
                        "probability": hit.probability,
                        "terms": hit.terms,
                        "is_relevant": is_relevant,
                    }
                    for hit, is_relevant in zip(search.hits, search.is_relevant, strict=True)
                ],
            }
            for search in searches
        ]
    if retrieval:
        value["retrieval"] = asdict(retrieval)
    return value


def search_evaluation_as_text(
    searches: "Sequence[SearchEvaluation]", retrieval: "RetrievalResults | None"
) -> list[str]:
    """Return a table of the precision of searches, and a table of mAP by number of labels."""
    from surelabel.report.metric_descriptions import format_described_metric_value

    rows = [
        [
            format_described_metric_value(search.precision, "%"),
            format_described_metric_value(search.prevalence, "%"),
            format_described_metric_value(search.average_precision, "%"),
            f"{search.relevant_images} of {search.images}",
            search.query,
        ]
        for search in searches
    ]
    header = [
        f"precision at {N_HITS}",
        "prevalence",
        "average precision",
        "matching images",
        "query",
    ]
    tables = [format_terminal_table(header, rows)] if rows else []
    if retrieval:
        tables.append(format_search_evaluation_lengths(retrieval))
    return [f"\n{table}" for table in tables]


def format_search_evaluation_lengths(retrieval: "RetrievalResults") -> str:
    """Format a table of mAP and number of queries, with one row per number of labels."""
    from surelabel.report.metric_descriptions import format_described_metric_value

    rows = [
        [
            length,
            format_described_metric_value(mean, "%"),
            format_described_metric_value(error, "%"),
            queries,
            unmatched,
        ]
        for length, mean, error, queries, unmatched in zip(
            retrieval.lengths,
            retrieval.mean_average_precision,
            retrieval.standard_error,
            retrieval.queries,
            retrieval.unmatched_queries,
            strict=True,
        )
    ]
    header = [
        "labels in the query",
        "mAP",
        "standard error",
        "evaluated queries",
        "queries without a matching image",
    ]
    return format_terminal_table(header, rows)
