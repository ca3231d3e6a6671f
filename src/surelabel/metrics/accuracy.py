"""How often the answer at a threshold is right, and the same with both answers weighing alike."""

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.records import Array


def accuracy(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> float:
    """Share of all decisions whose answer, present from the threshold up, is right.

    Most labels are absent from most pictures: saying "absent" always is right 96 times in 100 where
    a picture has 3 of 80 labels. Read ``balanced_accuracy`` beside it.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        threshold: Least probability of a label that is called present, in [0, 1].

    Returns:
        A number in [0, 1], 1 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, a probability is NaN or outside [0, 1], or a target is graded.
        ConfigError: ``threshold`` lies outside [0, 1].

    Source:
        One minus the Hamming loss: Schapire and Singer, Improved Boosting Algorithms Using
        Confidence-rated Predictions, Machine Learning, 1999.

    Example:
        >>> accuracy([[0.9, 0.2, 0.1, 0.4]], [[1, 0, 0, 1]])
        0.75
    """
    hits, present, passes, absent = _counts(probabilities, targets, known, threshold)
    return float(ratio((hits + passes).sum(), (present + absent).sum()))


def accuracy_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> Array:
    """``accuracy`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``accuracy``, class by class.
    """
    hits, present, passes, absent = _counts(probabilities, targets, known, threshold)
    return ratio(hits + passes, present + absent)


def balanced_accuracy(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> float:
    """Mean over classes of the balanced accuracy: always "absent" is worth 0.5, as is chance.

        (share found of the present + share left alone of the absent) / 2

    Args:
        probabilities: As for ``accuracy``.
        targets: As for ``accuracy``.
        known: As for ``accuracy``.
        threshold: As for ``accuracy``.

    Returns:
        A number in [0, 1], 1 is best, over the classes with a known positive and a known negative;
        NaN if none has both.

    Raises:
        InputError: as for ``accuracy``.
        ConfigError: as for ``accuracy``.

    Source:
        Brodersen et al., The Balanced Accuracy and Its Posterior Distribution, ICPR 2010.

    Differs:
        scikit-learn warns and takes the one share there is, where a class has no positive or no
        negative; such a class is left out here.

    Example:
        >>> balanced_accuracy([[0.9], [0.2], [0.6], [0.4]], [[1], [0], [0], [1]])
        0.5
    """
    each = balanced_accuracy_per_class(probabilities, targets, known, threshold=threshold)
    defined = each[~np.isnan(each)]
    return float(defined.mean()) if defined.size else float("nan")


def balanced_accuracy_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float = 0.5,
) -> Array:
    """Balanced accuracy of every class, ``(c,)``; NaN without a positive or without a negative.

    Source:
        As ``balanced_accuracy``.
    """
    hits, present, passes, absent = _counts(probabilities, targets, known, threshold)
    return (ratio(hits, present) + ratio(passes, absent)) / 2


def _counts(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    threshold: float,
) -> tuple[Array, Array, Array, Array]:
    """Of each class: present and found, present, absent and left alone, absent."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]. Got {threshold}.")
    p, y, known = checked_probabilities(probabilities, targets, known)
    present, called = y == 1, p >= threshold
    if np.count_nonzero(present) != np.count_nonzero(y):
        raise InputError(
            f"targets of an accuracy must be 0 or 1. Got {y[(y > 0) & ~present][0]}; round graded "
            f"targets first, or use brier or log_loss."
        )
    absent = known & ~present
    each = (present & called, present, absent & ~called, absent)
    hits, positives, passes, negatives = (np.count_nonzero(e, axis=0).astype(float) for e in each)
    return hits, positives, passes, negatives
