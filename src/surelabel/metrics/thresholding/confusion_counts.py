"""Compute the confusion counts of each class at a probability threshold."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import ConfigError, InputError
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs


def confusion_counts(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    threshold: float,
) -> tuple[Array, Array, Array, Array]:
    """Count true positives, positives, true negatives and negatives of each class.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        threshold: Smallest probability at which a label is predicted positive, in [0, 1].

    Returns:
        True positives, positives, true negatives and negatives, each ``(c,)``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is neither 0 nor 1, or ``known`` is not Boolean.
        ConfigError: If ``threshold`` is outside [0, 1].
    """
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]; got {threshold}.")
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    is_positive, predicted_positive = y == 1, p >= threshold
    if np.count_nonzero(is_positive) != np.count_nonzero(y):
        raise InputError(
            f"targets of an accuracy metric must be 0 or 1; got {y[(y > 0) & ~is_positive][0]}. "
            f"Round graded targets, or use brier or log_loss."
        )
    is_negative = known & ~is_positive
    masks = (
        is_positive & predicted_positive,
        is_positive,
        is_negative & ~predicted_positive,
        is_negative,
    )
    true_positives, positives, true_negatives, negatives = (
        np.count_nonzero(mask, axis=0).astype(float) for mask in masks
    )
    return true_positives, positives, true_negatives, negatives
