"""Validate the arrays and integers that are passed to metrics."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags, validate_targets_to_read
from surelabel.counts import format_count
from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes


def validate_ranking_metric_inputs(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Flags, Flags]:
    """Validate the input of a ranking metric and convert it to arrays.

    Args:
        scores: Scores of n images and c classes, ``(n, c)``. Scores of unknown targets must also be
            finite.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Scores, mask of the known positives and mask of the known targets, each ``(n, c)``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.
    """
    scores = np.asarray(scores, dtype=np.float64)
    is_positive, known = _validate_binary_targets(targets, known)
    check_shapes(scores=(scores, "n c"), targets=(is_positive, "n c"))
    _check_scores_are_finite(scores)
    return scores, is_positive, known


def validate_graded_ranking_metric_inputs(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Validate the input of a ranking metric of graded targets and convert it to arrays.

    Args:
        scores: Scores of n images and c classes, ``(n, c)``. Scores of unknown targets must also be
            finite.
        targets: Targets in [0, 1], NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Scores, targets (0 where unknown) and mask of the known targets, each ``(n, c)``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is outside [0, 1], or ``known`` is not Boolean.
    """
    scores = np.asarray(scores, dtype=np.float64)
    targets, known = validate_targets_to_read(targets, known)
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    _check_scores_are_finite(scores)
    return scores, targets, known


def _check_scores_are_finite(scores: Array) -> None:
    if not np.isfinite(scores).all():
        not_finite = scores[~np.isfinite(scores)]
        raise InputError(
            "scores must be finite; got "
            f"{format_count(len(not_finite), 'NaN or infinite value')} (first value: "
            f"{not_finite[0]}). Replace these scores with 0 and set known=False for the same "
            "entries."
        )


def _validate_binary_targets(
    targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Flags, Flags]:
    """Return the masks of the known positive targets and of the known targets, ``(n, c)`` each."""
    values = np.asarray(targets)
    is_positive = values == 1
    n_binary = np.count_nonzero(is_positive) + np.count_nonzero(values == 0)
    if known is None and n_binary == values.size and values.ndim == 2:  # no float conversion
        return is_positive, np.ones_like(is_positive)
    values, known = validate_targets_to_read(targets, known)
    is_positive = values == 1
    if np.count_nonzero(values) != np.count_nonzero(is_positive):
        raise InputError(
            f"targets of a ranking metric must be 0 or 1; got {values[~is_positive].max()}. "
            "Round graded targets, or use a metric for them, such as brier or vqa_accuracy."
        )
    return is_positive, known


def validate_probability_metric_inputs(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Validate the input of a metric of probabilities and convert it to arrays.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Probabilities, targets (0 where unknown) and mask of the known targets, each ``(n, c)``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    targets, known = validate_targets_to_read(targets, known)
    check_shapes(probabilities=(probabilities, "n c"), targets=(targets, "n c"))
    if probabilities.size and not (probabilities.min() >= 0 and probabilities.max() <= 1):
        raise InputError(
            f"probabilities must be in [0, 1] without NaN; got values from {probabilities.min()} "
            f"to {probabilities.max()}. Apply the sigmoid to logits."
        )
    return probabilities, targets, known


def validate_metric_whole_number(name: str, value: float, *, minimum: int = 1) -> int:
    """Return the value of a setting as an integer, after a check that it is a whole number.

    Args:
        name: Name of the setting, for the error message.
        value: Value of the setting.
        minimum: Smallest allowed value.

    Raises:
        ConfigError: If ``value`` is not a whole number or is less than ``minimum``.
    """
    if not float(value).is_integer() or value < minimum:
        raise ConfigError(f"{name} must be a whole number of at least {minimum}; got {value}.")
    return int(value)
