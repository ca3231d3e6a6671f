"""The best rows of a conjunction, exactly.

Every term is a log probability, so it is at most 0, and a row never scores above any of its terms.
A few rows from the top of each label's sorted list give a *floor*: a score that ``k`` rows reach.
Then only rows whose every term reaches the floor can be among the best. The label with the fewest
such rows either has so few that they are all scored, or all rows are scanned in blocks with a
bound that needs no exponential. The floor rises as better rows turn up.

Axes: ``n`` rows, ``c`` labels. Arrays are label-major, ``(c, n)``: a query reads only its labels.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Literal = tuple[int, int]  # column, and +1 for wanted or -1 for unwanted

HEAD = 1000  # rows from the top of each list, or 4 k if more, that make the first floor
BLOCK = 1 << 15  # rows scanned at once: a few of these arrays stay in the second-level cache
FEW = 1 / 32  # of the rows: below that, scoring them one by one beats the scan


@dataclass(frozen=True)
class Sorted:
    """Log-odds of many pictures, with what makes searching them quick.

    Attributes:
        logits: Log-odds, float32 in [-40, 40], ``(c, n)``.
        scores: Raw scores that break ties, float32, ``(c, n)``.
        order: Of each label the rows by falling logit, int32, ``(c, n)``.
        living: False where a row was removed, ``(n,)``; None when none was.
    """

    logits: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    order: npt.NDArray[np.int32]
    living: npt.NDArray[np.bool_] | None = None

    def list_of(self, literal: Literal) -> npt.NDArray[np.int32]:
        """All rows, the likeliest first, ``(n,)``."""
        column, sign = literal
        rows: npt.NDArray[np.int32] = self.order[column]
        return rows if sign > 0 else rows[::-1]


@dataclass(frozen=True)
class Found:
    """Rows of a search, the best first, ``(k,)`` each.

    Attributes:
        rows: Row numbers.
        scores: Sum of the log probabilities of the terms, nats, at most 0.
        ties: Sum of the signed raw scores; decides between equal ``scores``.
    """

    rows: Rows
    scores: Floats
    ties: Floats

    def best(self, k: int) -> "Found":
        """The first ``k``: by score, then by raw score, then by row number."""
        first = np.lexsort((self.rows, -self.ties, -self.scores))[:k]
        return Found(self.rows[first], self.scores[first], self.ties[first])


def order_of(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """The rows of one label by falling logit, ``(n,)`` to ``(n,)``."""
    return np.argsort(-logits).astype(np.int32)


def log_sigmoid(logits: npt.ArrayLike) -> Floats:
    """Log of the probability, from log-odds, float64; exact to the last digits at both ends.

        log p = min(z, 0) - log(1 + exp(-|z|))

    Example:
        >>> log_sigmoid([-40.0, 0.0, 40.0])
        array([-4.00000000e+01, -6.93147181e-01, -4.24835426e-18])
    """
    z = np.asarray(logits, dtype=np.float64)
    logs: Floats = np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))
    return logs


def conjunction(
    logits: npt.NDArray[np.floating], literals: Sequence[Literal], rows: Rows | slice
) -> Floats:
    """Log probability that all terms hold, the terms taken as independent given the picture.

        s = Σ_{j wanted} log p_j + Σ_{k unwanted} log(1 - p_k)

    Args:
        logits: Log-odds, ``(c, n)``.
        literals: ``(column, sign)`` of each term.
        rows: Which ones.

    Returns:
        One number a row, nats, at most 0.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 23, in logarithms.

    Differs:
        From log-odds, never from probabilities, which are all 1 in float32 above a log-odds of 17.
    """
    terms = (log_sigmoid(sign * logits[column, rows]) for column, sign in literals)
    return np.asarray(sum(terms))  # one after the other: np.sum adds one row in another order


def top_k(table: Sorted, literals: Sequence[Literal], k: int) -> Found:
    """The ``k`` best rows of a conjunction: exactly those that scoring every row would give.

    Args:
        table: The rows.
        literals: ``(column, sign)`` of each term, at least one, no column twice.
        k: How many, >= 1; all rows when there are fewer.

    Returns:
        The rows by score, then by raw score, then by row number.

    Source:
        The floor from sorted lists is Fagin, Lotem and Naor, Optimal Aggregation Algorithms for
        Middleware, JCSS 66 (2003) 614-656; the scan is ours.
    """
    floor = _first_floor(table, literals, k)
    rows, scores = _reaching(table, literals, k, floor)
    ties = sum(sign * table.scores[column, rows].astype(np.float64) for column, sign in literals)
    return Found(rows, scores, np.asarray(ties)).best(k)


def joined(parts: Sequence[Found], starts: Sequence[int]) -> Found:
    """The rows found in several tables; those of each count on from its start."""
    none = np.empty(0)
    rows = [part.rows + start for part, start in zip(parts, starts, strict=False)]
    return Found(
        np.concatenate([none.astype(np.int64), *rows]),
        np.concatenate([none, *(part.scores for part in parts)]),
        np.concatenate([none, *(part.ties for part in parts)]),
    )


def _first_floor(table: Sorted, literals: Sequence[Literal], k: int) -> float:
    """The score that ``k`` rows from the tops of the lists reach.

    Most pictures lack most labels, so the lists of unwanted labels say little: they serve only
    where nothing is wanted.
    """
    telling = [literal for literal in literals if literal[1] > 0] or literals
    heads = [table.list_of(literal)[: max(4 * k, HEAD)] for literal in telling]
    rows = _living(table, np.unique(np.concatenate(heads)).astype(np.int64))
    return _kth(conjunction(table.logits, literals, rows), k)


def _reaching(
    table: Sorted, literals: Sequence[Literal], k: int, floor: float
) -> tuple[Rows, Floats]:
    """Rows, and their scores, among which are all that reach the floor of the ``k`` best."""
    lengths = [_reach(table, literal, floor) for literal in literals]
    shortest = min(lengths)
    if shortest > FEW * table.logits.shape[1]:
        return _scan(table, literals, k, floor)
    rows = table.list_of(literals[lengths.index(shortest)])[:shortest].astype(np.int64)
    return _kept(table, literals, rows, floor)


def _reach(table: Sorted, literal: Literal, floor: float) -> int:
    """How many rows from the top of one list have a term that reaches the floor."""
    column, sign = literal
    rows, logits, least = table.list_of(literal), table.logits[column], _least(floor)
    return bisect_left(range(len(rows)), True, key=lambda i: sign * logits[rows[i]] < least)


def _least(floor: float) -> float:
    """The log-odds below which a term cannot reach ``floor``, with a margin for rounding.

    log p >= floor means z >= floor - log(1 - exp(floor)).
    """
    if floor >= 0 or floor == -np.inf:
        return -np.inf
    least = floor - log(-expm1(floor))
    return least - 1e-5 * (1 + abs(least))


def _scan(table: Sorted, literals: Sequence[Literal], k: int, floor: float) -> tuple[Rows, Floats]:
    """All rows in blocks; a block gives up only rows whose upper bound reaches the floor."""
    rows, scores = np.empty(0, np.int64), np.empty(0)
    n = table.logits.shape[1]
    work = np.zeros((5, min(BLOCK, n)), np.float32)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        hopeful = start + _hopeful(table.logits[:, start:stop], literals, floor, work)
        if len(hopeful):
            more_rows, more_scores = _kept(table, literals, hopeful, floor)
            rows, scores = np.append(rows, more_rows), np.append(scores, more_scores)
            floor = max(floor, _kth(scores, k))
            rows, scores = rows[scores >= floor], scores[scores >= floor]
    return rows, scores


def _hopeful(
    logits: npt.NDArray[np.float32],
    literals: Sequence[Literal],
    floor: float,
    work: npt.NDArray[np.float32],
) -> Rows:
    """Places in a block whose lowest term, and whose sum of min(z, 0), both reach the floor.

    log p <= min(z, 0), so their sum bounds the score from above.
    """
    lowest, bound, signed, capped, zero = work[:, : logits.shape[1]]
    lowest.fill(np.inf)
    bound.fill(0.0)
    for column, sign in literals:
        z = logits[column] if sign > 0 else np.negative(logits[column], out=signed)
        np.minimum(lowest, z, out=lowest)
        bound += np.minimum(z, zero, out=capped)  # four times as fast as with a scalar
    margin = 1e-5 + len(literals) * float(np.finfo(np.float32).eps)  # rounding, which adds up
    return np.flatnonzero((lowest >= _least(floor)) & (bound >= floor * (1 + margin)))


def _kept(
    table: Sorted, literals: Sequence[Literal], rows: Rows, floor: float
) -> tuple[Rows, Floats]:
    rows = _living(table, rows)
    scores = conjunction(table.logits, literals, rows)
    return rows[scores >= floor], scores[scores >= floor]


def _living(table: Sorted, rows: Rows) -> Rows:
    return rows if table.living is None else rows[table.living[rows]]


def _kth(scores: Floats, k: int) -> float:
    """The k-th highest score; minus infinity when there are fewer."""
    return float(np.partition(scores, -k)[-k]) if len(scores) >= k else -np.inf
