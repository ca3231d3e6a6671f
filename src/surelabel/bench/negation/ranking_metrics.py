"""Compute ranking metrics of queries with an excluded label, also on resamples of images."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.metrics.arrays.nan_division import divide_or_nan

AP, P_AT_5, P_AT_10, VIOLATIONS = "ap", "precision_at_5", "precision_at_10", "violations_at_10"
QUERY_BLOCK = 32  # queries that are scored at once
NEGATION_METRICS = (AP, P_AT_5, P_AT_10, VIOLATIONS)
ResampleCounts = npt.NDArray[np.uint8]
ScoreQueries = Callable[[ColumnIndices], Array]


def ranking_metrics_of_query(
    scores: Array, is_relevant: Flags, is_unwanted: Flags, counts: ResampleCounts
) -> dict[str, Array]:
    """Return the ranking metrics of one query on each resample, by metric, ``(r,)`` each.

    The first metric is the average precision, which is NaN if no image is relevant. The other
    metrics are the share of relevant images among the first 5 and the first 10 hits, and the share
    of images with the excluded label among the first 10 hits. An image that a resample contains
    twice counts as two hits.

    Args:
        scores: Scores, ``(n,)``. Images with equal scores are ranked by row.
        is_relevant: True for relevant images, ``(n,)``.
        is_unwanted: True for images with the excluded label, ``(n,)``.
        counts: Number of times that each resample contains each image, ``(n, r)``. A resample
            contains at least 10 images.
    """
    order = np.argsort(-scores, kind="stable")
    counts, is_relevant, is_unwanted = counts[order], is_relevant[order], is_unwanted[order]
    totals = counts.cumsum(axis=0, dtype=np.int32)
    relevant_counts = counts[is_relevant].astype(float)
    precisions = np.nan_to_num(
        divide_or_nan(relevant_counts.cumsum(axis=0), totals[is_relevant])
    )  # undefined before the first image that a resample contains
    weighted_sum = (relevant_counts * precisions).sum(axis=0)
    return {
        AP: divide_or_nan(weighted_sum, relevant_counts.sum(axis=0)),
        P_AT_5: _share_of_first_hits(totals, is_relevant, 5),
        P_AT_10: _share_of_first_hits(totals, is_relevant, 10),
        VIOLATIONS: _share_of_first_hits(totals, is_unwanted, 10),
    }


def mean_ranking_metrics(
    score: ScoreQueries, pairs: ColumnIndices, is_positive: Flags, counts: ResampleCounts
) -> dict[str, Array]:
    """Return the mean ranking metrics over queries on each resample, by metric, ``(r,)`` each.

    A query without a relevant image in a resample is left out of the mean AP of this resample.
    The number of left-out queries is returned as ``undefined``.

    Args:
        score: Function that returns the scores ``(n, q)`` of the images for pairs ``(q, 2)``.
        pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
        is_positive: True for positive targets, ``(n, c)``.
        counts: Number of times that each resample contains each image, ``(n, r)``.
    """
    sums = {name: np.zeros(counts.shape[1]) for name in NEGATION_METRICS}
    undefined = np.zeros(counts.shape[1])
    for start in range(0, len(pairs), QUERY_BLOCK):
        block = pairs[start : start + QUERY_BLOCK]
        for (a, b), scores in zip(block.tolist(), score(block).T, strict=True):
            wanted, unwanted = is_positive[:, a], is_positive[:, b]
            metrics = ranking_metrics_of_query(scores, wanted & ~unwanted, unwanted, counts)
            undefined += np.isnan(metrics[AP])
            for name, values in metrics.items():
                sums[name] += np.nan_to_num(values)
    n = np.full_like(undefined, len(pairs))
    means = {name: divide_or_nan(total, n) for name, total in sums.items()}
    return means | {AP: divide_or_nan(sums[AP], n - undefined), "undefined": undefined}


def mean_average_precision_of_queries(
    score: ScoreQueries, pairs: ColumnIndices, is_positive: Flags
) -> float:
    """Return the mean average precision over queries on the original images.

    Queries without a relevant image are left out. Images with equal scores are ranked by row.

    Args:
        score: Function that returns the scores ``(n, q)`` of the images for pairs ``(q, 2)``.
        pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
        is_positive: True for positive targets, ``(n, c)``.
    """
    scores = score(pairs)
    order = np.argsort(-scores, axis=0, kind="stable")
    relevant = is_positive[:, pairs[:, 0]] & ~is_positive[:, pairs[:, 1]]
    hits = np.take_along_axis(relevant, order, axis=0)
    ranks = np.arange(1, len(hits) + 1)[:, None]
    precision_sums = (hits.cumsum(axis=0) / ranks).sum(axis=0, where=hits)
    return float(np.nanmean(divide_or_nan(precision_sums, hits.sum(axis=0))))


def resample_counts(weights: Array) -> ResampleCounts:
    """Return the weights of resamples ``(r, n)`` as counts in contiguous memory, ``(n, r)``."""
    return np.ascontiguousarray(weights.T.astype(np.uint8))


def _share_of_first_hits(totals: npt.NDArray[np.int32], is_counted: Flags, k: int) -> Array:
    """Return the share of counted images among the first k hits of each resample, ``(r,)``.

    Args:
        totals: Cumulative counts of the ranked images, ``(n, r)``.
        is_counted: True for counted images, in the same order, ``(n,)``.
        k: Number of hits.
    """
    end = min(4 * k, len(totals))
    while end < len(totals) and totals[end - 1].min() < k:
        end = min(2 * end, len(totals))
    n_hits = np.diff(np.minimum(totals[:end], k), axis=0, prepend=0)
    return np.asarray(n_hits[is_counted[:end]].sum(axis=0) / k)
