"""Measure the retrieval mAP of conjunctions of labels for each row, by query length."""

from typing import Any

import numpy as np

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.bench.calibrated.plan import CalibrationPlan
from surelabel.bench.calibrated.readouts import HeadReadout
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.records import LabelledFeatures
from surelabel.retrieval.conjunction_map import (
    mean_average_precision_of_conjunctions,
    number_of_queries_in_conjunction_map,
)

MAX_SCORED_PAIRS = 6_000_000_000  # queries x images; 1.5 core minutes per row
TIE_RANGE = 0.1  # range in nats below -40 in which tied logits are placed


def measure_calibrated_retrieval(
    readout: HeadReadout, test: LabelledFeatures, plan: CalibrationPlan, cache: ResultCache
) -> dict[str, Any]:
    """Return the mean average precision of conjunctive queries by query length, for the first fit.

    Args:
        readout: Scores and log-odds of a row.
        test: Test split.
        plan: Sizes and settings of the comparison.
        cache: Cache of the result.

    Returns:
        Lists with one entry for each query length: ``length``, ``map``, ``standard_error`` (0 if
        all queries were evaluated), ``evaluated`` (number of evaluated queries) and ``unfulfilled``
        (number of queries without a relevant image). The entry ``max_exact_length`` is the largest
        length for which all queries were evaluated.
    """
    logits = break_calibrated_retrieval_ties(readout.logits[0], readout.scores[0])
    max_exact_length = calibrated_retrieval_exact_length(len(test), len(test.names), plan)

    def compute() -> dict[str, Any]:
        precision = mean_average_precision_of_conjunctions(
            logits,
            test.targets,
            test.known,
            max_literals=plan.max_query_length,
            max_exact_literals=max_exact_length,
            sample_size=plan.queries_per_shape,
        )
        curve = precision.curve
        return {
            "length": [point.length for point in curve],
            "map": [point.mean for point in curve],
            "standard_error": [point.standard_error for point in curve],
            "evaluated": [precision.queries[point.length] for point in curve],
            "unfulfilled": [precision.skipped[point.length] for point in curve],
            "max_exact_length": max_exact_length,
        }

    settings = (plan.max_query_length, max_exact_length, plan.queries_per_shape)
    key = ("retrieval", result_cache_digest(logits, test.targets, test.known), *settings)
    return dict(cache.load_or_compute(*key, compute=compute))


def calibrated_retrieval_exact_length(n: int, c: int, plan: CalibrationPlan) -> int:
    """Return the largest query length up to which all queries are evaluated.

    The number of queries of all lengths up to this length, times the number of images, is at most
    ``MAX_SCORED_PAIRS``. If the queries with one label exceed this limit, the result is 0.

    Args:
        n: Number of images.
        c: Number of labels.
        plan: Plan with the upper limits ``max_exact_length`` and ``max_query_length``.

    Example:
        >>> plan = CalibrationPlan()
        >>> calibrated_retrieval_exact_length(10_000, 80, plan)
        3
        >>> calibrated_retrieval_exact_length(10_000, 1000, plan)
        1
    """
    total, exact_length = 0, 0
    for length in range(1, min(plan.max_exact_length, plan.max_query_length, c) + 1):
        total += number_of_queries_in_conjunction_map(c, length)
        if total * n > MAX_SCORED_PAIRS:
            break
        exact_length = length
    return exact_length


def break_calibrated_retrieval_ties(logits: Array, scores: Array) -> Array:
    """Break the ties of logits at the lower limit by the order of the raw scores.

        logit = -40 - 0.1 · (1 - (s - low) / (high - low))     for each logit at the limit of -40

    Here s is the raw score, and low and high are the lowest and the highest raw score among the
    ties. A link with a margin maps all low scores to the same probability. Without this step, the
    ties would reduce the mAP of the row, although the head ranks these images.

    Args:
        logits: Log-odds, ``(n, c)``.
        scores: Raw scores, ``(n, c)``.
    """
    is_tied = logits <= -LOGIT_LIMIT
    if not is_tied.any():
        return logits
    low, high = scores[is_tied].min(), scores[is_tied].max()
    relative = (scores - low) / max(high - low, np.finfo(float).tiny)
    return np.where(is_tied, -LOGIT_LIMIT - TIE_RANGE * (1 - relative), logits)
