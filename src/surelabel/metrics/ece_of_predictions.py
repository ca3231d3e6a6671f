"""Compute the expected calibration error of binary predictions.

In the other calibration metrics, the confidence is the probability of the label and the accuracy is
the fraction of positives. In ``ece_of_predictions``, the confidence is the probability of the
prediction, max(p, 1 - p) at probability p, and the accuracy is the fraction of correct predictions.
"""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs
from surelabel.metrics.ece import ece, ece_per_class


def ece_of_predictions(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return ``ece`` of the predictions "positive" (p >= 0.5) and "negative" (p < 0.5).

        confidence = max(p, 1 - p),   accuracy = fraction of correct predictions

    where p is the probability of the label. With an even number of bins and no probability at a bin
    edge below 0.5, ``ece_of_predictions`` is at most ``ece``, because gaps at p and at 1 - p may
    cancel. If all probabilities are at least 0.5, the two errors are equal.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1. Bins below 0.5
            stay empty.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Guo et al., On Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599, with
        "positive" and "negative" as the two classes of each label.

    Example:
        >>> round(ece_of_predictions([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.2333
    """
    return ece(*_ece_prediction_confidence(probabilities, targets, known), bins=bins)


def ece_of_predictions_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``ece_of_predictions`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``ece_of_predictions``, computed here for each column.
    """
    return ece_per_class(*_ece_prediction_confidence(probabilities, targets, known), bins=bins)


def _ece_prediction_confidence(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Return confidence and correctness of the predictions and the known mask, ``(n, c)`` each."""
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    return np.maximum(p, 1 - p), np.where(p >= 0.5, y, 1 - y), known
