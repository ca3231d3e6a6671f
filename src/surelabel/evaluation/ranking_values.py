"""Compute the values by which ranking metrics sort images and labels."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.mapped_arrays import mapped_zeros, to_mapped_array
from surelabel.records import Predictions

LOGIT_TOLERANCE = 1e-5  # smaller decreases of a float32 logit are rounding errors


def prediction_ranking_values(predictions: Predictions) -> Array:
    """Return the values by which ranking metrics sort images and labels, ``(n, c)``.

    If the logits of each label are a non-decreasing function of the scores of the label, the scores
    are returned. This condition holds for calibrators that preserve the order. The scores are also
    returned if there are no logits. Otherwise, the ranks of all logits are returned, with ties
    broken by the scores.

    Args:
        predictions: Predictions of n images and c labels.
    """
    scores = to_mapped_array(predictions.scores, dtype=np.float64)
    if predictions.logits is None or _logits_rise_with_scores(predictions.logits, scores):
        return scores
    logits, flat_scores = predictions.logits.ravel(), scores.ravel()
    order = to_mapped_array(np.lexsort((flat_scores, logits)))
    differs = np.diff(logits[order]) != 0
    differs |= np.diff(flat_scores[order]) != 0
    ranks = mapped_zeros(len(order), np.float64)
    ranks[order] = np.cumsum(np.concatenate([[False], differs]))
    return ranks.reshape(scores.shape)


def _logits_rise_with_scores(logits: npt.NDArray[np.float32], scores: Array) -> bool:
    """Return whether the logits of each label are a non-decreasing function of its scores."""
    for column in range(scores.shape[1]):
        order = np.argsort(scores[:, column], kind="stable")
        ordered = logits[order, column].astype(np.float64)
        has_equal_scores = np.diff(scores[order, column]) == 0
        is_decreasing = np.maximum.accumulate(ordered) - ordered > LOGIT_TOLERANCE
        differs = np.abs(np.diff(ordered)) > LOGIT_TOLERANCE
        if is_decreasing.any() or (has_equal_scores & differs).any():
            return False
    return True
