"""Exact top-k search for a conjunction of labels, with a score threshold from sorted lists.

A row is an image of the index. The score of a row is the sum of the log probabilities of the query
terms. Each term is at most 0, so the score is at most the smallest term.

The first rows of each label's sorted list determine a *floor*: a score that at least ``k`` rows
reach. A row can be among the best ``k`` only if each of its terms reaches the floor. If the term of
one label reaches the floor in only a few rows, only these rows are scored. Otherwise all rows are
scanned in blocks, and only rows whose terms all reach the floor are scored. The floor increases
when better rows are found.

Axes: ``n`` rows, ``c`` labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, log

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.label_table import IndexLabelTable, RowNumbers

Floats = npt.NDArray[np.float64]
QueryLiteral = tuple[int, int]  # column, and +1 for wanted or -1 for unwanted

HEAD_ROWS = 1000  # rows from the top of each list, or 4 k if more, that make the initial floor
BLOCK_ROWS = 1 << 18  # rows per block, whose mask fits into the second-level cache
SPARSE_SHARE = 1 / 32  # of the rows: below that, scoring them one by one is faster than the scan


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
    return _sum_of_terms((sign, logits[column, rows]) for column, sign in literals)


def conjunction_search_log_probability_of_rows(
    table: IndexLabelTable, literals: Sequence[QueryLiteral], rows: RowNumbers | slice
) -> Floats:
    """Return the log probability that some rows of a label table match a query.

    Args:
        table: Log-odds of all rows.
        literals: ``(column, sign)`` of each term.
        rows: Row numbers of the images to score.

    Returns:
        Values of `conjunction_search_log_probability`, which are equal bit for bit.
    """
    return _sum_of_terms((sign, table.logits(column, rows)) for column, sign in literals)


def conjunction_search_top_k(
    table: IndexLabelTable, literals: Sequence[QueryLiteral], k: int
) -> ConjunctionSearchRows:
    """Find the ``k`` rows with the highest score of a conjunction, by an exact search.

    Args:
        table: Log-odds of all rows.
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
    ties = sum(
        sign * table.tie_values(column, rows).astype(np.float64) for column, sign in literals
    )
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
    table: IndexLabelTable, literals: Sequence[QueryLiteral], k: int
) -> float:
    """Return a score that at least ``k`` of the first rows of the sorted lists reach.

    Most labels are negative in most images, so unwanted labels exclude few rows. Lists of unwanted
    labels are used only if the query has no wanted label.
    """
    used_literals = [literal for literal in literals if literal[1] > 0] or literals
    n_head = max(4 * k, HEAD_ROWS)
    heads = [table.best_rows(column, sign, n_head) for column, sign in used_literals]
    rows = _drop_removed_conjunction_search_rows(table, np.unique(np.concatenate(heads)))
    return _kth_highest_conjunction_search_score(
        conjunction_search_log_probability_of_rows(table, literals, rows), k
    )


def _conjunction_search_candidates(
    table: IndexLabelTable, literals: Sequence[QueryLiteral], k: int, floor: float
) -> tuple[RowNumbers, Floats]:
    """Return candidate rows and their scores, including all rows that reach the final floor."""
    lowest_logit = _conjunction_search_lowest_logit(floor)
    counts = [table.count_reaching(column, sign, lowest_logit) for column, sign in literals]
    shortest = min((count for count in counts if count is not None), default=table.n_rows)
    if shortest > SPARSE_SHARE * table.n_rows:
        return _scan_conjunction_search_blocks(table, literals, k, floor)
    column, sign = literals[counts.index(shortest)]
    rows = table.best_rows(column, sign, shortest)
    return _conjunction_search_rows_at_floor(table, literals, rows, floor)


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
    table: IndexLabelTable, literals: Sequence[QueryLiteral], k: int, floor: float
) -> tuple[RowNumbers, Floats]:
    """Scan all rows in blocks and score only rows whose terms all reach the floor."""
    rows, scores = np.empty(0, np.int64), np.empty(0)
    for start in range(0, table.n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, table.n_rows))
        is_candidate = np.ones(block.stop - start, bool)
        for column, sign in literals:
            table.reaches(
                column, sign, _conjunction_search_lowest_logit(floor), block, is_candidate
            )
        candidates = start + np.flatnonzero(is_candidate)
        if len(candidates):
            new_rows, new_scores = _conjunction_search_rows_at_floor(
                table, literals, candidates, floor
            )
            rows, scores = np.append(rows, new_rows), np.append(scores, new_scores)
            floor = max(floor, _kth_highest_conjunction_search_score(scores, k))
            rows, scores = rows[scores >= floor], scores[scores >= floor]
    return rows, scores


def _conjunction_search_rows_at_floor(
    table: IndexLabelTable, literals: Sequence[QueryLiteral], rows: RowNumbers, floor: float
) -> tuple[RowNumbers, Floats]:
    """Return the rows that were not removed and reach the floor, with their scores."""
    rows = _drop_removed_conjunction_search_rows(table, rows)
    scores = np.zeros(len(rows))
    for column, sign in literals:  # each term is at most 0, so a sum below the floor stays there
        scores = scores + conjunction_search_log_sigmoid(sign * table.logits(column, rows))
        rows, scores = rows[scores >= floor], scores[scores >= floor]
    return rows, scores


def _drop_removed_conjunction_search_rows(table: IndexLabelTable, rows: RowNumbers) -> RowNumbers:
    return rows if table.is_active is None else rows[table.is_active[rows]]


def _kth_highest_conjunction_search_score(scores: Floats, k: int) -> float:
    """Return the k-th highest score, or minus infinity if there are fewer than ``k`` scores."""
    return float(np.partition(scores, -k)[-k]) if len(scores) >= k else -np.inf


def _sum_of_terms(terms: Iterable[tuple[int, npt.NDArray[np.floating]]]) -> Floats:
    """Return the sum of the log probabilities of terms, given as signs and log-odds."""
    values = (conjunction_search_log_sigmoid(sign * logits) for sign, logits in terms)
    return np.asarray(sum(values))  # sequentially: np.sum adds a single row in another order
