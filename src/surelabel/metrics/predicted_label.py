"""The other convention: how sure the more likely answer is, and how often it is right.

Everywhere else the confidence is the probability of the label and accuracy the share present.
Here the confidence is max(p, 1 - p), from 0.5 up, and accuracy the share of right answers.
"""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.calibration_error import ece, ece_per_class
from surelabel.metrics.checked import checked_probabilities
from surelabel.records import Array, Flags


def ece_of_predictions(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """``ece`` of the answers "present" (p >= 0.5) and "absent", in bins of their confidence.

        confidence = max(p, 1 - p),   accuracy = share of right answers

    A gap at p is the same gap, with the other sign, at 1 - p. In an even number of bins no bin
    straddles 0.5, and this is ``ece`` except that the gaps of mirrored bins may cancel: it is then
    never more than ``ece``, and equal to it where all probabilities lie on one side of 0.5.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1; only those that reach above
            0.5 are used.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        Guo et al., On Calibration of Modern Neural Networks, ICML 2017, arXiv:1706.04599, with
        "present" and "absent" as the two classes of every decision.

    Example:
        >>> round(ece_of_predictions([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.2333
    """
    return ece(*_folded(probabilities, targets, known), bins=bins)


def ece_of_predictions_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``ece_of_predictions`` of every class, ``(c,)``; NaN where nothing is known.

    Source:
        As ``ece_of_predictions``, class by class.
    """
    return ece_per_class(*_folded(probabilities, targets, known), bins=bins)


def _folded(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Confidence of the more likely answer, how right it is, and where that is known."""
    p, y, known = checked_probabilities(probabilities, targets, known)
    return np.maximum(p, 1 - p), np.where(p >= 0.5, y, 1 - y), known
