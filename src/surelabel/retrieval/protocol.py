"""How well conjunctions find pictures: mean average precision over all queries.

A query names some labels as wanted, at least one, and some as unwanted. A picture is relevant when
all of it holds. All pictures are ranked; queries that no picture fulfils are counted and left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.ranking import average_precision
from surelabel.records import Flags
from surelabel.retrieval.search import Floats, log_sigmoid
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class QueryPrecision:
    """Average precision over queries.

    Attributes:
        mean: Over all queries that a picture fulfils, each weighing the same, in [0, 1]; NaN when
            there is none.
        per_length: The same for queries of each number of labels.
        queries: How many were judged, for each number of labels.
        skipped: How many no picture fulfils, for each number of labels.
    """

    mean: float
    per_length: dict[int, float]
    queries: dict[int, int]
    skipped: dict[int, int]


def number_of_queries(c: int, length: int) -> int:
    """Queries of exactly ``length`` of ``c`` labels, at least one of them wanted.

        C(c, n) · (2^n - 1)

    Example:
        >>> number_of_queries(80, 2)
        9480
    """
    return comb(c, length) * int(2**length - 1)


def mean_average_precision_of_queries(
    logits: npt.ArrayLike, targets: npt.ArrayLike, *, most_literals: int = 2
) -> QueryPrecision:
    """Rank all pictures for every conjunction and average the precision.

        s = Σ_{j wanted} log p_j + Σ_{k unwanted} log(1 - p_k)
        mAP = mean over queries of Σ_i (R_i - R_{i-1}) · P_i     over distinct s, highest first

    Args:
        logits: Log-odds, ``(n, c)``.
        targets: 1 where the label is present, 0 where it is absent; no other value, ``(n, c)``.
        most_literals: Queries have 1 to this many labels, >= 1.

    Returns:
        Means and counts.

    Raises:
        InputError: the shapes differ, a target is neither 0 nor 1, or ``most_literals`` is below 1.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        section 5.3 and eq. 23.

    Differs:
        The paper does not say what becomes of queries without a relevant picture; we leave them
        out and count them. Scores come from log-odds, where products of probabilities saturate.

    Example:
        >>> precision = mean_average_precision_of_queries([[2, -1], [-1, 1], [0, -3]], np.eye(3, 2))
        >>> precision.mean, precision.queries, precision.skipped
        (1.0, {1: 2, 2: 2}, {1: 0, 2: 1})
    """
    logits, targets = np.asarray(logits, np.float64), np.asarray(targets)
    check_shapes(logits=(logits, "n c"), targets=(targets, "n c"))
    if not np.isin(targets, (0, 1)).all():
        raise InputError(
            "targets must be 0 or 1, all of them known, to say which pictures fulfil a query. "
            "Got other values: judge only pictures whose labels are all known."
        )
    if most_literals < 1:
        raise InputError(f"most_literals must be at least 1. Got {most_literals}.")
    lengths = range(1, min(most_literals, logits.shape[1]) + 1)
    precisions: dict[int, list[float]] = {length: [] for length in lengths}
    for length, scores, relevant in _queries(logits, targets > 0, len(lengths)):
        precisions[length].append(average_precision(scores[:, None], relevant[:, None]))
    everything = [value for values in precisions.values() for value in values]
    queries = {length: len(values) for length, values in precisions.items()}
    return QueryPrecision(
        mean=_mean(everything),
        per_length={length: _mean(values) for length, values in precisions.items()},
        queries=queries,
        skipped={n: number_of_queries(logits.shape[1], n) - queries[n] for n in lengths},
    )


def _queries(logits: Floats, present: Flags, most: int) -> Iterator[tuple[int, Floats, Flags]]:
    """Length, scores ``(n,)`` and relevance ``(n,)`` of each query that some picture fulfils.

    Depth first, so that a longer query starts from the sums of a shorter one, and none is tried
    that extends one without relevant pictures.
    """
    n, c = logits.shape
    signs = (
        (1, log_sigmoid(logits.T), present.T),
        (0, log_sigmoid(-logits.T), ~present.T),
    )

    def longer(
        first: int, length: int, wanted: int, scores: Floats, relevant: Flags
    ) -> Iterator[tuple[int, Floats, Flags]]:
        for column in range(first, c):
            for sign, logs, holds in signs:
                total, left = scores + logs[column], relevant & holds[column]
                if not left.any():
                    continue
                if wanted + sign:
                    yield length, total, left
                if length < most:
                    yield from longer(column + 1, length + 1, wanted + sign, total, left)

    yield from longer(0, 1, 0, np.zeros(n), np.ones(n, bool))


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
