"""Compute the accuracy of visual question answering (VQA) with graded targets."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.input_validation import validate_graded_ranking_metric_inputs
from surelabel.metrics.arrays.nan_division import divide_or_nan, mean_ignoring_nan
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks


def vqa_accuracy(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the target of the highest-scored answer, averaged over questions.

        A = mean over questions of  y of the answer with the highest score

    where y is the target of an answer. If several answers have the highest score, y is the mean of
    their targets. Questions without a known target are left out. For targets 0 and 1, the value
    equals ``precision_at_k`` with k = 1.

    Args:
        scores: Finite scores or probabilities of n questions and c answers, ``(n, c)``.
        targets: Scores of the answers in [0, 1], such as those of
            :func:`surelabel.data.answer_scores`, NaN = unknown, ``(n, c)``. A question whose
            answers are in no column has a row of zeros.
        known: Mask of the known targets, ``(n, c)``. Only answers with a known target are
            compared. If None, all targets except NaN are known.

    Returns:
        Accuracy in [0, 1], where 1 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is outside [0, 1], or ``known`` is not Boolean.

    Source:
        Antol et al., VQA: Visual Question Answering, arXiv:1505.00468, Section 3.

    Differs:
        The accuracy of the highest-scored answer is the mean over tied answers, so the order of the
        answers has no effect.

    Example:
        >>> vqa_accuracy([[0.9, 0.1], [0.2, 0.7]], [[1.0, 0.0], [0.9, 0.3]])
        0.65
    """
    return mean_ignoring_nan(vqa_accuracy_per_question(scores, targets, known))


def vqa_accuracy_per_question(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return ``vqa_accuracy`` of each of the n questions, ``(n,)``.

    The value of a question without known targets is NaN.

    Source:
        See ``vqa_accuracy``, computed here for each row.
    """
    scores, targets, known = validate_graded_ranking_metric_inputs(scores, targets, known)
    if not scores.shape[1]:
        return np.full(len(scores), np.nan)
    accuracies = [np.empty(0)]
    for block_scores, block_targets, block_known in iterate_row_blocks(scores, targets, known):
        ranked = np.where(block_known, block_scores, -np.inf)
        is_highest = (ranked == ranked.max(axis=1, keepdims=True)) & block_known
        sums = (is_highest * block_targets).sum(axis=1)
        accuracies.append(divide_or_nan(sums, np.count_nonzero(is_highest, axis=1)))
    return np.concatenate(accuracies)
