"""Measure the one-positive bias: a higher recall of main objects than of other objects."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_ranking_metric_inputs
from surelabel.metrics.arrays.nan_division import divide_or_nan


@dataclass(frozen=True)
class OnePositiveBias:
    """Recall of main objects and of other labels, with as many predicted as positive labels.

    Attributes:
        main_recall: Recall of main objects, in [0, 1]. If there is no main object, the recall is
            NaN.
        other_recall: Recall of all other labels, in [0, 1]. If there is no other label, the recall
            is NaN.
    """

    main_recall: float
    other_recall: float

    @property
    def recall_gap(self) -> float:
        """Return the recall of main objects minus the recall of other labels."""
        return self.main_recall - self.other_recall


def measure_one_positive_bias(
    scores: npt.ArrayLike,
    targets: npt.ArrayLike,
    main: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
) -> OnePositiveBias:
    """Compute the recall of main objects and of other labels at the true label count of each image.

    In each image with k positive labels, the k labels with the highest scores are predicted.
    Therefore no threshold is needed, scores of any scale are comparable, and a method cannot
    improve by predicting more labels.

    Args:
        scores: Finite scores of n images and c labels, ``(n, c)``, higher for more likely labels.
        targets: Targets, ``(n, c)``: 1 is positive, 0 is negative, NaN is unknown.
        main: Column of the main object of each image, ``(n,)``. If the main object is none of the
            labels, the column index is -1. A main object without a positive target, for example
            because other objects hide the main object, is ignored.
        known: True where the target is known, ``(n, c)``. Only labels with a known target are
            ranked. If None, all targets except NaN are known.

    Raises:
        InputError: If the shapes differ, if a score is not finite, if a known target is neither 0
            nor 1, or if ``main`` contains a value that is neither a column index nor -1.

    Source:
        None; ours. The bias is described in TailorCLIP, arXiv:2606.11626, section 3.1.

    Differs:
        If several labels are tied at rank k, each of them is counted as an equal fraction of a
        prediction.

    Example:
        >>> scores, targets = [[0.9, 0.5, 0.1], [0.3, 0.8, 0.6]], [[1, 0, 1], [0, 1, 1]]
        >>> measure_one_positive_bias(scores, targets, [0, 1])
        OnePositiveBias(main_recall=1.0, other_recall=0.5)
    """
    scores, positive, known = validate_ranking_metric_inputs(scores, targets, known)
    columns = np.asarray(main)
    n, c = scores.shape
    if columns.shape != (n,) or columns.dtype.kind not in "iu":
        raise InputError(
            f"main must contain a whole number for each of {format_count(n, 'image')}; got "
            f"an array of {columns.dtype} with shape {columns.shape}."
        )
    if n and not (columns.min() >= -1 and columns.max() < c):
        raise InputError(
            f"main must contain column indices from 0 to {c - 1}, or -1 for a main object without "
            f"column; got values from {columns.min()} to {columns.max()}."
        )
    is_main = np.arange(c) == columns[:, None]
    predicted = _one_positive_bias_predictions(scores, positive, known)
    return OnePositiveBias(
        main_recall=_one_positive_bias_recall(predicted, positive & is_main),
        other_recall=_one_positive_bias_recall(predicted, positive & ~is_main),
    )


def _one_positive_bias_recall(values: Array, mask: Flags) -> float:
    """Return the recall of the labels in the mask, or NaN if the mask contains no label."""
    return float(divide_or_nan(values[mask].sum(), np.float64(mask.sum())))


def _one_positive_bias_predictions(scores: Array, positive: Flags, known: Flags) -> Array:
    """Return 1 for the top-ranked labels of each image and 0 for the other labels, ``(n, c)``.

    The number of top-ranked labels is the number of positives of the image. If several labels are
    tied at the last of these ranks, each of them gets an equal fraction.
    """
    ranked = np.where(known, scores, -np.inf)
    n_positive = positive.sum(axis=1, keepdims=True)
    descending = -np.sort(-ranked, axis=1)
    last = np.take_along_axis(descending, np.maximum(n_positive - 1, 0), axis=1)
    is_above, is_tied = ranked > last, ranked == last
    ranks_left = n_positive - is_above.sum(axis=1, keepdims=True)
    n_tied = np.maximum(is_tied.sum(axis=1, keepdims=True), 1)
    shares = np.where(is_tied, ranks_left / n_tied, is_above)
    predicted: Array = np.where(n_positive > 0, shares, 0.0)
    return predicted
