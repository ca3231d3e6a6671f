"""Compute the metrics of retrieval from images to captions, or from captions to images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.decisions.error_prediction import ErrorPrediction, evaluate_error_prediction
from surelabel.errors import InputError
from surelabel.evaluation.ranking_uncertainty import (
    RankingUncertainty,
    evaluate_ranking_uncertainty,
)
from surelabel.metrics import ConfidenceInterval
from surelabel.retrieval.caption_retrieval.false_negatives import (
    FalseNegatives,
    count_false_negatives,
)
from surelabel.retrieval.caption_retrieval.image_folds import RECALL_CUTOFFS
from surelabel.retrieval.caption_retrieval.query_metrics import (
    chance_recall_at_k,
    first_relevant_rank,
    query_average_precision_at_r,
    query_ndcg,
    query_r_precision,
    query_recall_at_k,
)
from surelabel.retrieval.caption_retrieval.relevant_items import RelevantItems
from surelabel.retrieval.caption_retrieval.relevant_ranks import (
    RelevantRanks,
    compute_relevant_ranks,
)
from surelabel.retrieval.caption_retrieval.top_items import top_items_of_queries

TOP_ITEMS = 10  # items of each query whose uncertainty is averaged
UNCERTAINTY, MINUS_SCORE, MINUS_MARGIN = "uncertainty", "minus_score", "minus_margin"

PairValues = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class PairDirection:
    """Retrieval metrics of one direction.

    A query is left out if it has no own item, such as an image without a caption. Metrics with the
    prefix ``relevant_`` count all relevant items, and ``ndcg`` weights all items by their grades.
    Other metrics count own items only.

    Attributes:
        queries: Row of each evaluated query, ``(q,)``.
        image_of_query: Row of the image of each query, ``(q,)``.
        n_items: Number of ranked items.
        n_left_out: Number of queries without an own item.
        values: Value of each query by metric, ``(q,)`` each, in [0, 1] or a rank.
        chance_recall: Expected recall of a random ranking by metric.
        top_items: Highest-ranked items of each query, best first, ``(q, k)``.
        is_top_item_relevant: True if a highest-ranked item is relevant, ``(q, k)``.
        error_predictions: Agreement of an uncertainty with the errors of the first item, by
            quantity: ``uncertainty`` (if there are variances), ``minus_score`` and
            ``minus_margin`` (highest minus second highest score; omitted if there is one item). The
            first item is correct if it is an own item.
        ranking_uncertainty: Correlations of the mean uncertainty of the first items with the
            average precision at R of all relevant items, by quantity, without ``minus_margin``.
        false_negatives: Number of relevant items that are not own items, and the number of these
            items that are ranked as irrelevant. If only own items are relevant, the value is None.
        intervals: 95 % bootstrap interval over images by metric.
    """

    queries: ColumnIndices
    image_of_query: ColumnIndices
    n_items: int
    n_left_out: int
    values: Mapping[str, Array]
    chance_recall: Mapping[str, float]
    top_items: ColumnIndices
    is_top_item_relevant: Flags
    error_predictions: Mapping[str, ErrorPrediction]
    ranking_uncertainty: Mapping[str, tuple[RankingUncertainty, ...]]
    false_negatives: FalseNegatives | None
    intervals: Mapping[str, ConfidenceInterval] = field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, float]:
        """Return the mean over queries by metric, the median for ranks, or NaN without queries."""
        return {
            name: float(np.median(values) if name.endswith("median_rank") else values.mean())
            if len(values)
            else float("nan")
            for name, values in self.values.items()
        }

    @property
    def recalls(self) -> dict[int, float]:
        """Return the recall of own items by k, in [0, 1]."""
        metrics = self.metrics
        return {k: metrics[f"recall_at_{k}"] for k in RECALL_CUTOFFS}

    def as_dict(self) -> dict[str, object]:
        """Return all metrics as a dictionary for JSON, without the values of single queries."""
        summary: dict[str, object] = {
            "queries": len(self.queries),
            "items": self.n_items,
            "left_out": self.n_left_out,
            "metrics": self.metrics,
            "intervals": {
                name: {"low": interval.low, "high": interval.high}
                for name, interval in self.intervals.items()
            },
            "chance": dict(self.chance_recall),
            "error_predictions": {
                name: prediction.as_dict() for name, prediction in self.error_predictions.items()
            },
            "ranking_uncertainty": {
                name: [
                    {
                        "k": result.k,
                        "bin_pearson": result.bin_pearson,
                        "pearson": result.pearson,
                        "spearman": result.spearman,
                    }
                    for result in results
                ]
                for name, results in self.ranking_uncertainty.items()
            },
        }
        if self.false_negatives is not None:
            summary["false_negatives"] = {
                "relevant_items": self.false_negatives.relevant_items,
                "missed_items": self.false_negatives.missed_items,
                "rate": self.false_negatives.rate,
            }
        return summary


def evaluate_pair_direction(
    scores: PairValues,
    relevant: RelevantItems,
    image_of_query: ColumnIndices,
    *,
    variances: PairValues | None,
    threshold: float | None,
) -> PairDirection:
    """Compute the retrieval metrics of one direction.

    Args:
        scores: Finite scores of q queries and m items, ``(q, m)``.
        relevant: Relevant items of the q queries, with own items.
        image_of_query: Row of the image of each query, ``(q,)``.
        variances: Uncertainty of each pair, ``(q, m)``, or None.
        threshold: Lowest grade of a relevant item. If None, only own items are relevant.

    Raises:
        InputError: If no query has an own item, if a score or the uncertainty of a top-ranked item
            is not finite, if ``threshold`` is not in (0, 1], or if shapes differ.
    """
    n_items = scores.shape[1]
    graded = compute_relevant_ranks(scores, relevant)
    own = graded.own()
    if not len(own.queries):
        raise InputError(
            "At least one image must have a caption; got no such image. Check image_rows."
        )
    graded = graded.of_queries(own.queries)
    all_relevant = own if threshold is None else graded.at_least(threshold)
    top_items = top_items_of_queries(scores, k=min(TOP_ITEMS, n_items))[own.queries]
    quantities = _uncertainties_of_top_items(scores, variances, own.queries, top_items)
    average_precision = query_average_precision_at_r(all_relevant)
    is_correct = first_relevant_rank(own) == 1
    values = _metrics_of_ranks(own)
    if threshold is not None:
        relevant_values = _metrics_of_ranks(all_relevant)
        values |= {f"relevant_{name}": value for name, value in relevant_values.items()}
        values["ndcg"] = query_ndcg(graded)
    return PairDirection(
        queries=own.queries,
        image_of_query=image_of_query[own.queries],
        n_items=n_items,
        n_left_out=own.n_left_out,
        values=values,
        chance_recall={
            f"recall_at_{k}": float(chance_recall_at_k(own, n_items, k=k).mean())
            for k in RECALL_CUTOFFS
        },
        top_items=top_items,
        is_top_item_relevant=_are_top_items_relevant(relevant, threshold, own.queries, top_items),
        error_predictions={
            name: evaluate_error_prediction(quantity[:, 0], is_correct)
            for name, quantity in quantities.items()
        },
        ranking_uncertainty={
            name: evaluate_ranking_uncertainty(quantity, average_precision)
            for name, quantity in quantities.items()
            if name != MINUS_MARGIN
        },
        false_negatives=None if threshold is None else count_false_negatives(all_relevant),
    )


def _metrics_of_ranks(ranks: RelevantRanks) -> dict[str, Array]:
    """Return the value of each query by metric, ``(q,)`` each."""
    recalls = {f"recall_at_{k}": query_recall_at_k(ranks, k=k) for k in RECALL_CUTOFFS}
    return recalls | {
        "median_rank": first_relevant_rank(ranks).astype(np.float64),
        "r_precision": query_r_precision(ranks),
        "map_at_r": query_average_precision_at_r(ranks),
    }


def _uncertainties_of_top_items(
    scores: PairValues,
    variances: PairValues | None,
    queries: ColumnIndices,
    top_items: ColumnIndices,
) -> dict[str, Array]:
    """Return the quantities that may predict errors for the highest-ranked items, ``(q, k)``."""
    rows = queries[:, None]
    top_scores = scores[rows, top_items].astype(np.float64)
    quantities = {MINUS_SCORE: -top_scores}
    if top_items.shape[1] > 1:
        quantities[MINUS_MARGIN] = top_scores[:, 1:2] - top_scores[:, :1]
    if variances is not None:
        uncertainty = variances[rows, top_items].astype(np.float64)
        quantities = {UNCERTAINTY: uncertainty} | quantities
    return quantities


def _are_top_items_relevant(
    relevant: RelevantItems,
    threshold: float | None,
    queries: ColumnIndices,
    top_items: ColumnIndices,
) -> Flags:
    """Return True for each highest-ranked item that is an own item or has a sufficient grade."""
    is_relevant = relevant.is_own.copy()
    if threshold is not None:
        is_relevant |= relevant.grades >= threshold
    query_of_item = np.repeat(np.arange(len(relevant)), np.diff(relevant.offsets))
    n_items = max(int(relevant.items.max(initial=0)), int(top_items.max(initial=0))) + 1
    keys = (query_of_item * n_items + relevant.items)[is_relevant]
    return np.isin(queries[:, None] * n_items + top_items, keys)
