"""How well the rows find pictures by conjunctions of labels, by the number of labels."""

from typing import Any

import numpy as np

from surelabel.bench.calibrated.plan import Plan
from surelabel.bench.calibrated.reads import Read
from surelabel.bench.cells import Cells, digest
from surelabel.records import LOGIT_LIMIT, Array, LabelledFeatures
from surelabel.retrieval.protocol import mean_average_precision_of_queries, number_of_queries

MOST = 6_000_000_000  # queries x pictures that are all judged: 1.5 minutes a row on one core
REACH = 0.1  # nats: how far below their common limit tied pictures are spread


def retrieval(read: Read, test: LabelledFeatures, plan: Plan, cells: Cells) -> dict[str, Any]:
    """Mean average precision of queries of each length, for the first fit.

    Returns:
        ``length``, ``map``, ``error`` (its standard error, 0 where all were judged), ``judged`` and
        ``empty``, one entry a length; and ``exact``, the length up to which all were judged.
    """
    logits, exact = (
        untied(read.logits[0], read.scores[0]),
        most_exact(len(test), len(test.names), plan),
    )

    def measured() -> dict[str, Any]:
        found = mean_average_precision_of_queries(
            logits,
            test.targets,
            test.known,
            most_literals=plan.longest,
            exact_literals=exact,
            sample=plan.sample,
        )
        return {
            "length": [point.length for point in found.curve],
            "map": [point.mean for point in found.curve],
            "error": [point.error for point in found.curve],
            "judged": [found.queries[point.length] for point in found.curve],
            "empty": [found.skipped[point.length] for point in found.curve],
            "exact": exact,
        }

    settings = (plan.longest, exact, plan.sample)
    key = ("retrieval", digest(logits, test.targets, test.known), *settings)
    return dict(cells.value(*key, otherwise=measured))


def most_exact(n: int, c: int, plan: Plan) -> int:
    """The greatest length up to which judging all queries stays below ``MOST``.

    Example:
        >>> most_exact(10_000, 80, Plan()), most_exact(10_000, 1000, Plan())
        (3, 1)
    """
    total, exact = 0, 0
    for length in range(1, min(plan.exact, plan.longest, c) + 1):
        total += number_of_queries(c, length)
        if total * n > MOST:
            break
        exact = length
    return exact


def untied(logits: Array, scores: Array) -> Array:
    """Logits with those at the lowest limit told apart by raw scores, just below that limit.

        -40 - 0.1 · (1 - (s - least s) / (greatest tied s - least s))

    A map with a margin gives all small scores the same probability, and a ranking that treats them
    as equal would blame the head for its map.
    """
    tied = logits <= -LOGIT_LIMIT
    if not tied.any():
        return logits
    low, high = scores[tied].min(), scores[tied].max()
    place = (scores - low) / max(high - low, np.finfo(float).tiny)
    return np.where(tied, -LOGIT_LIMIT - REACH * (1 - place), logits)
