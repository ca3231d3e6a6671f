"""Compute log probability and truth value of each literal in each annotated image.

A literal is a label with a sign: wanted or unwanted. A query is a tuple of literals, sorted by
column. The score of an image is the float32 sum of the log probabilities in the order of the
literals, so equal queries have equal scores.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags
from surelabel.metrics.arrays.input_validation import validate_ranking_metric_inputs
from surelabel.retrieval.formula_probability import log_sigmoid

QueryLiteral = tuple[int, int]  # column, and +1 for wanted or -1 for unwanted
LiteralTuple = tuple[QueryLiteral, ...]
LogProbabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LiteralScores:
    """Log probability and truth value of each literal in each image.

    Attributes:
        log_probabilities: Mapping from sign (+1 wanted, -1 unwanted) to the log probabilities of
            the literals, ``(c, n)``. If the target is unknown, the value is minus infinity.
        is_true: Mapping from sign to the truth values of the literals, boolean, ``(c, n)``. If the
            target is unknown, the value is False.
    """

    log_probabilities: dict[int, LogProbabilities]
    is_true: dict[int, Flags]

    @property
    def n_labels(self) -> int:
        """Return the number of labels, ``c``."""
        return len(self.is_true[1])

    @property
    def n_images(self) -> int:
        """Return the number of images, ``n``."""
        return len(self.is_true[1].T)

    def query_scores(self, query: LiteralTuple) -> LogProbabilities:
        """Return the log probability that each image matches a query, ``(n,)``.

        If a target of a label of the query is unknown, the value is minus infinity.
        """
        scores = np.zeros(self.n_images, np.float32)
        for column, sign in query:
            scores += self.log_probabilities[sign][column]
        return scores

    def relevant_images(self, query: LiteralTuple) -> Flags:
        """Return a mask of the images that match a query according to the targets, ``(n,)``."""
        is_relevant = np.ones(self.n_images, bool)
        for column, sign in query:
            is_relevant &= self.is_true[sign][column]
        return is_relevant


def compute_literal_scores(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> LiteralScores:
    """Compute log probabilities and truth values of both literals of each label.

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: Targets, 1 if positive, 0 if negative and NaN if unknown, ``(n, c)``.
        known: True for known targets, boolean, ``(n, c)``. If None, all targets except NaN are
            known.

    Raises:
        InputError: If shapes differ, a logit is not finite, or a known target is not 0 or 1.
    """
    logits, is_positive, known = validate_ranking_metric_inputs(logits, targets, known)
    log_probabilities = {sign: log_sigmoid(sign * logits.T).astype(np.float32) for sign in (1, -1)}
    for values in log_probabilities.values():
        values[~known.T] = -np.inf
    is_true = {1: is_positive.T, -1: (known & ~is_positive).T}
    contiguous = {sign: np.ascontiguousarray(values) for sign, values in is_true.items()}
    return LiteralScores(log_probabilities, contiguous)


def average_precision_of_literal_scores(scores: LogProbabilities, is_relevant: Flags) -> float:
    """Return the average precision of the image ranking of one query.

    Images below the lowest-ranked relevant image are not sorted, because their order has no effect.
    Images with equal scores share one threshold.

    Args:
        scores: Scores, ``(n,)``. Images with higher scores are ranked first.
        is_relevant: True for relevant images, ``(n,)``. At least one image must be relevant.

    Returns:
        Average precision in (0, 1], equal to the result of ``metrics.average_precision``.
    """
    relevant_scores = np.sort(scores[is_relevant])
    ranked_scores = np.sort(scores[scores >= relevant_scores[0]])
    n_relevant_above = len(relevant_scores) - np.searchsorted(relevant_scores, relevant_scores)
    n_above = len(ranked_scores) - np.searchsorted(ranked_scores, relevant_scores)
    return float((n_relevant_above / n_above).mean())
