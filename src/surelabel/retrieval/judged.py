"""Pictures whose labels are known, ready to be ranked for any conjunction of them.

A query is a tuple of literals by rising column. Its score adds up log probabilities in that order
in float32, so that a query has the same score however it was come by.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.metrics.checked import checked_scores
from surelabel.records import Flags
from surelabel.retrieval.search import Literal, log_sigmoid

Literals = tuple[Literal, ...]
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Judged:
    """What every literal says of every picture, once for wanted and once for unwanted labels.

    Attributes:
        logs: Log probability of the literal, minus infinity where the label is unknown, by sign,
            each ``(c, n)``.
        holds: Whether the literal is true, False where the label is unknown, by sign, each
            ``(c, n)``.
    """

    logs: dict[int, Scores]
    holds: dict[int, Flags]

    @property
    def labels(self) -> int:
        """How many, ``c``."""
        return len(self.holds[1])

    @property
    def pictures(self) -> int:
        """How many, ``n``."""
        return len(self.holds[1].T)

    def scores(self, literals: Literals) -> Scores:
        """Log probability that all literals hold, ``(n,)``."""
        scores = np.zeros(self.pictures, np.float32)
        for column, sign in literals:
            scores += self.logs[sign][column]
        return scores

    def relevant(self, literals: Literals) -> Flags:
        """Which pictures are known to fulfil all literals, ``(n,)``."""
        relevant = np.ones(self.pictures, bool)
        for column, sign in literals:
            relevant &= self.holds[sign][column]
        return relevant


def judged(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Judged:
    """Look at every label from both sides.

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.

    Raises:
        InputError: shapes differ, a log-odds is not finite, or a known target is not 0 or 1.
    """
    logits, present, known = checked_scores(logits, targets, known)
    logs = {sign: log_sigmoid(sign * logits.T).astype(np.float32) for sign in (1, -1)}
    for side in logs.values():
        side[~known.T] = -np.inf
    holds = {1: present.T, -1: (known & ~present).T}
    return Judged(logs, {sign: np.ascontiguousarray(side) for sign, side in holds.items()})


def precision_of(scores: Scores, relevant: Flags) -> float:
    """Average precision of one ranking, of which at least one picture is relevant.

    Only scores that reach the lowest relevant one are sorted; ties count as one threshold.

    Args:
        scores: Higher comes first, ``(n,)``.
        relevant: What should come first, ``(n,)``.

    Returns:
        A number in (0, 1], as ``metrics.average_precision`` has it.
    """
    own = np.sort(scores[relevant])
    reaching = np.sort(scores[scores >= own[0]])
    found = len(own) - np.searchsorted(own, own)
    listed = len(reaching) - np.searchsorted(reaching, own)
    return float((found / listed).mean())
