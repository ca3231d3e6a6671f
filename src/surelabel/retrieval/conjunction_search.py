"""Exact top-k search for a conjunction of labels, with a score threshold from sorted lists.

A row is an image of the index. The score of a row is the sum of the log probabilities of the query
terms. Each term is at most 0, so the score is at most the smallest term.

The first rows of each label's sorted list determine a *floor*: a score that at least ``k`` rows
reach. A row can be among the best ``k`` only if each of its terms reaches the floor. If the term of
one label reaches the floor in only a few rows, only these rows are scored. Otherwise all rows are
scanned in blocks, and only rows whose upper bound of the score reaches the floor are scored. The
upper bound needs no exponential. The floor increases when better rows are found.

Axes: ``n`` rows, ``c`` labels. Arrays have the shape ``(c, n)``, so that a query reads only the
data of its labels.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
QueryLiteral = tuple[int, int]  # column, and +1 for wanted or -1 for unwanted

HEAD_ROWS = 1000  # rows from the top of each list, or 4 k if more, that make the initial floor
BLOCK_ROWS = 1 << 15  # rows per block: a few arrays of this size fit into the second-level cache
SPARSE_SHARE = 1 / 32  # of the rows: below that, scoring them one by one is faster than the scan


@dataclass(frozen=True)
class ConjunctionSearchLogits:
    """Log-odds of many images, with the rows of each label in sorted order.

    Attributes:
        logits: Log-odds, float32 in [-40, 40], ``(c, n)``.
        scores: Raw scores that break ties, float32, ``(c, n)``.
        order: Row numbers for each label, sorted by decreasing logit, int32, ``(c, n)``.
        is_active: True for rows that were not removed, ``(n,)``. If None, no row was removed.
    """

    logits: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    order: npt.NDArray[np.int32]
    is_active: npt.NDArray[np.bool_] | None = None

    def rows_by_probability(self, literal: QueryLiteral) -> npt.NDArray[np.int32]:
        """Return all row numbers, sorted by decreasing probability of a literal, ``(n,)``."""
        column, sign = literal
        rows: npt.NDArray[np.int32] = self.order[column]
        return rows if sign > 0 else rows[::-1]


@dataclass(frozen=True)
class ConjunctionSearchRows:
    """Result of a search: row numbers and their scores, as arrays of length ``k``.

    Attributes:
        rows: Row numbers.
        scores: Sum of the log probabilities of the terms in nats, at most 0.
        ties: Sum of the raw scores, negated for unwanted labels, which sorts rows of equal
            ``scores``.
    """

    rows: RowNumbers
    scores: Floats
    ties: Floats

    def select_best(self, k: int) -> "ConjunctionSearchRows":
        """Return the best ``k`` rows, sorted by score, then by raw score, then by row number."""
        order = np.lexsort((self.rows, -self.ties, -self.scores))[:k]
        return ConjunctionSearchRows(self.rows[order], self.scores[order], self.ties[order])


def descending_order_for_conjunction_search(
    logits: npt.NDArray[np.float32],
) -> npt.NDArray[np.int32]:
    """Return the row numbers of one label, sorted by decreasing logit, ``(n,)``."""
    return np.argsort(-logits).astype(np.int32)


def conjunction_search_log_sigmoid(logits: npt.ArrayLike) -> Floats:
    """Compute log probabilities from log-odds in float64, accurate for very small and large logits.

        log p = min(z, 0) - log(1 + exp(-|z|))

    Here z is the log-odds and p is the probability.

    Example:
        >>> conjunction_search_log_sigmoid([-40.0, 0.0, 40.0])
        array([-4.00000000e+01, -6.93147181e-01, -4.24835426e-18])
    """
    z = np.asarray(logits, dtype=np.float64)
    log_probabilities: Floats = np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))
    return log_probabilities


def conjunction_search_log_probability(
    logits: npt.NDArray[np.floating], literals: Sequence[QueryLiteral], rows: RowNumbers | slice
) -> Floats:
    """Return the log probability that each image matches a query.

        s = Σ_{j wanted} log p_j + Σ_{k unwanted} log(1 - p_k)

    Here p_j is the probability of label j. The labels are treated as independent given the image.

    Args:
        logits: Log-odds, ``(c, n)``.
        literals: ``(column, sign)`` of each term.
        rows: Row numbers of the images to score.

    Returns:
        Log probability of each image in nats, at most 0.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 23, in logarithms.

    Differs:
        The score is computed from log-odds, because float32 probabilities above a log-odds of 17
        are rounded to 1.
    """
    terms = (
        conjunction_search_log_sigmoid(sign * logits[column, rows]) for column, sign in literals
    )
    return np.asarray(sum(terms))  # sequentially: np.sum adds a single row in another order


def conjunction_search_top_k(
    table: ConjunctionSearchLogits, literals: Sequence[QueryLiteral], k: int
) -> ConjunctionSearchRows:
    """Find the ``k`` rows with the highest score of a conjunction, by an exact search.

    Args:
        table: Sorted log-odds of all rows.
        literals: ``(column, sign)`` of each term; at least one term, without repeated columns.
        k: Number of rows, >= 1. If the table has fewer rows, all rows are returned.

    Returns:
        The ``k`` rows, sorted by score, then by raw score, then by row number.

    Source:
        The score threshold from sorted lists follows Fagin, Lotem and Naor, Optimal Aggregation
        Algorithms for Middleware, JCSS 66 (2003) 614-656; the scan in blocks is ours.
    """
    floor = _initial_conjunction_search_floor(table, literals, k)
    rows, scores = _conjunction_search_candidates(table, literals, k, floor)
    ties = sum(sign * table.scores[column, rows].astype(np.float64) for column, sign in literals)
    return ConjunctionSearchRows(rows, scores, np.asarray(ties)).select_best(k)


def merge_conjunction_search_rows(
    parts: Sequence[ConjunctionSearchRows], starts: Sequence[int]
) -> ConjunctionSearchRows:
    """Concatenate the results of several tables, and add the start of each to its row numbers."""
    empty = np.empty(0)
    rows = [part.rows + start for part, start in zip(parts, starts, strict=False)]
    return ConjunctionSearchRows(
        np.concatenate([empty.astype(np.int64), *rows]),
        np.concatenate([empty, *(part.scores for part in parts)]),
        np.concatenate([empty, *(part.ties for part in parts)]),
    )


def _initial_conjunction_search_floor(
    table: ConjunctionSearchLogits, literals: Sequence[QueryLiteral], k: int
) -> float:
    """Return a score that at least ``k`` of the first rows of the sorted lists reach.

    Most labels are negative in most images, so unwanted labels exclude few rows. Lists of unwanted
    labels are used only if the query has no wanted label.
    """
    used_literals = [literal for literal in literals if literal[1] > 0] or literals
    heads = [
        table.rows_by_probability(literal)[: max(4 * k, HEAD_ROWS)] for literal in used_literals
    ]
    rows = _drop_removed_conjunction_search_rows(
        table, np.unique(np.concatenate(heads)).astype(np.int64)
    )
    return _kth_highest_conjunction_search_score(
        conjunction_search_log_probability(table.logits, literals, rows), k
    )


def _conjunction_search_candidates(
    table: ConjunctionSearchLogits, literals: Sequence[QueryLiteral], k: int, floor: float
) -> tuple[RowNumbers, Floats]:
    """Return candidate rows and their scores, including all rows that reach the final floor."""
    lengths = [
        _count_conjunction_search_rows_at_floor(table, literal, floor) for literal in literals
    ]
    shortest = min(lengths)
    if shortest > SPARSE_SHARE * table.logits.shape[1]:
        return _scan_conjunction_search_blocks(table, literals, k, floor)
    rows = table.rows_by_probability(literals[lengths.index(shortest)])[:shortest].astype(np.int64)
    return _conjunction_search_rows_at_floor(table, literals, rows, floor)


def _count_conjunction_search_rows_at_floor(
    table: ConjunctionSearchLogits, literal: QueryLiteral, floor: float
) -> int:
    """Count the rows whose term for one literal reaches the floor, in the sorted list."""
    column, sign = literal
    rows, logits = table.rows_by_probability(literal), table.logits[column]
    lowest_logit = _conjunction_search_lowest_logit(floor)
    return bisect_left(range(len(rows)), True, key=lambda i: sign * logits[rows[i]] < lowest_logit)


def _conjunction_search_lowest_logit(floor: float) -> float:
    """Return the log-odds below which a term cannot reach ``floor``, with a rounding margin.

    For a term with probability p and log-odds z, log p >= floor is equivalent to
    z >= floor - log(1 - exp(floor)).
    """
    if floor >= 0 or floor == -np.inf:
        return -np.inf
    logit = floor - log(-expm1(floor))
    return logit - 1e-5 * (1 + abs(logit))


def _scan_conjunction_search_blocks(
    table: ConjunctionSearchLogits, literals: Sequence[QueryLiteral], k: int, floor: float
) -> tuple[RowNumbers, Floats]:
    """Scan all rows in blocks and score only rows whose upper bound reaches the floor."""
    rows, scores = np.empty(0, np.int64), np.empty(0)
    n = table.logits.shape[1]
    buffers = np.zeros((5, min(BLOCK_ROWS, n)), np.float32)
    for start in range(0, n, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n)
        block = table.logits[:, start:stop]
        candidates = start + _conjunction_search_rows_by_bound(block, literals, floor, buffers)
        if len(candidates):
            new_rows, new_scores = _conjunction_search_rows_at_floor(
                table, literals, candidates, floor
            )
            rows, scores = np.append(rows, new_rows), np.append(scores, new_scores)
            floor = max(floor, _kth_highest_conjunction_search_score(scores, k))
            rows, scores = rows[scores >= floor], scores[scores >= floor]
    return rows, scores


def _conjunction_search_rows_by_bound(
    logits: npt.NDArray[np.float32],
    literals: Sequence[QueryLiteral],
    floor: float,
    buffers: npt.NDArray[np.float32],
) -> RowNumbers:
    """Return the rows of a block whose lowest term and upper bound both reach the floor.

    A term with log-odds z is at most min(z, 0), so the sum of min(z, 0) over the terms bounds the
    score from above.
    """
    lowest, bound, signed, capped, zero = buffers[:, : logits.shape[1]]
    lowest.fill(np.inf)
    bound.fill(0.0)
    for column, sign in literals:
        z = logits[column] if sign > 0 else np.negative(logits[column], out=signed)
        np.minimum(lowest, z, out=lowest)
        bound += np.minimum(z, zero, out=capped)  # four times as fast as with a scalar
    margin = 1e-5 + len(literals) * float(np.finfo(np.float32).eps)  # accumulated rounding error
    reaches_floor = (lowest >= _conjunction_search_lowest_logit(floor)) & (
        bound >= floor * (1 + margin)
    )
    return np.flatnonzero(reaches_floor)


def _conjunction_search_rows_at_floor(
    table: ConjunctionSearchLogits, literals: Sequence[QueryLiteral], rows: RowNumbers, floor: float
) -> tuple[RowNumbers, Floats]:
    """Return the rows that were not removed and reach the floor, with their scores."""
    rows = _drop_removed_conjunction_search_rows(table, rows)
    scores = conjunction_search_log_probability(table.logits, literals, rows)
    return rows[scores >= floor], scores[scores >= floor]


def _drop_removed_conjunction_search_rows(
    table: ConjunctionSearchLogits, rows: RowNumbers
) -> RowNumbers:
    return rows if table.is_active is None else rows[table.is_active[rows]]


def _kth_highest_conjunction_search_score(scores: Floats, k: int) -> float:
    """Return the k-th highest score, or minus infinity if there are fewer than ``k`` scores."""
    return float(np.partition(scores, -k)[-k]) if len(scores) >= k else -np.inf
