"""One-positive bias: the main object is recognized more often than other objects of the image."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_scores
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.records import Array, Flags


@dataclass(frozen=True)
class OnePositiveBias:
    """Recall of main objects and of other labels, with as many predictions as positive labels.

    Attributes:
        main_recall: Recall of main objects, in [0, 1]; NaN if there is none.
        other_recall: Recall of all other labels, in [0, 1]; NaN if there is none.
    """

    main_recall: float
    other_recall: float

    @property
    def recall_gap(self) -> float:
        """Recall of main objects minus recall of other labels."""
        return self.main_recall - self.other_recall


def measure_one_positive_bias(
    scores: npt.ArrayLike,
    targets: npt.ArrayLike,
    main: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
) -> OnePositiveBias:
    """Compute the recall of main objects and of other labels at the true number of labels.

    For each image, the predictions are as many top-ranked labels as the image has positives. This
    needs no threshold, so that scores of any scale are comparable, and a method cannot improve by
    predicting more labels.

    Args:
        scores: Finite numbers, higher for more likely labels, ``(n, c)``.
        targets: Targets, ``(n, c)``: 1 is positive, 0 is negative, NaN is unknown.
        main: Column of the main object of each image, ``(n,)``; -1 if it is none of the labels.
            A main object that is not positive (hidden by others) does not count.
        known: True where the target is known, ``(n, c)``; only known labels are ranked.

    Raises:
        InputError: If the shapes differ, if a score or a target is out of range, or if ``main``
            is not a column.

    Source:
        none; ours. The bias is that of TailorCLIP, arXiv:2606.11626, section 3.1.

    Differs:
        Labels that tie for the last places share them equally.

    Example:
        >>> scores, targets = [[0.9, 0.5, 0.1], [0.3, 0.8, 0.6]], [[1, 0, 1], [0, 1, 1]]
        >>> measure_one_positive_bias(scores, targets, [0, 1])
        OnePositiveBias(main_recall=1.0, other_recall=0.5)
    """
    scores, positive, known = validate_scores(scores, targets, known)
    columns = np.asarray(main)
    n, c = scores.shape
    if columns.shape != (n,) or columns.dtype.kind not in "iu":
        raise InputError(
            f"main must be a whole number for each of {n} images; got {columns.dtype} of shape "
            f"{columns.shape}."
        )
    if n and not (columns.min() >= -1 and columns.max() < c):
        raise InputError(
            f"main must be columns of {c} labels, or -1; got {columns.min()} to {columns.max()}."
        )
    is_main = np.arange(c) == columns[:, None]
    predicted = _predicted_at_true_count(scores, positive, known)
    return OnePositiveBias(
        main_recall=_recall_where(predicted, positive & is_main),
        other_recall=_recall_where(predicted, positive & ~is_main),
    )


def _recall_where(values: Array, mask: Flags) -> float:
    """Return the recall of the labels where the mask is True, NaN without such labels."""
    return float(divide_or_nan(values[mask].sum(), np.float64(mask.sum())))


def _predicted_at_true_count(scores: Array, positive: Flags, known: Flags) -> Array:
    """Return the share of each label that is among the top ranks of its image, ``(n, c)``.

    The number of top ranks is the number of positives. Tied labels share the last ranks equally.
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
