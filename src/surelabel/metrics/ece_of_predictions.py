"""Expected calibration error of the binary prediction, with confidence max(p, 1 - p).

In the other calibration metrics, the confidence is the probability of the label and the accuracy
is the share of positives. Here the confidence is that of the predicted answer, at least 0.5, and
the accuracy is the share of correct predictions.
"""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.input_validation import validate_probabilities
from surelabel.metrics.ece import ece, ece_per_class
from surelabel.records import Array, Flags


def ece_of_predictions(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Return ``ece`` of the predictions "positive" (p >= 0.5) and "negative".

        confidence = max(p, 1 - p),   accuracy = share of correct predictions

    A gap at p is the same gap, with the opposite sign, at 1 - p. With an even number of bins, gaps
    of mirrored bins may cancel. The error is then at most ``ece``, and equal to it if all
    probabilities lie on one side of 0.5.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1. Bins below 0.5
            stay empty.

    Returns:
        Calibration error in [0, 1], 0 is best; NaN if no target is known.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], or a known
            target is outside [0, 1].
        ConfigError: If ``bins`` is not a whole number >= 1.

    Source:
        Guo et al., On Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599, with
        "positive" and "negative" as the two classes of each label.

    Example:
        >>> round(ece_of_predictions([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.2333
    """
    return ece(*_prediction_confidence(probabilities, targets, known), bins=bins)


def ece_of_predictions_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """Return ``ece_of_predictions`` of each class, ``(c,)``; NaN if no target is known.

    Source:
        ``ece_of_predictions`` of each column.
    """
    return ece_per_class(*_prediction_confidence(probabilities, targets, known), bins=bins)


def _prediction_confidence(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Return confidence and correctness of the predictions and the known mask, ``(n, c)`` each."""
    p, y, known = validate_probabilities(probabilities, targets, known)
    return np.maximum(p, 1 - p), np.where(p >= 0.5, y, 1 - y), known
