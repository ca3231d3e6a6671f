"""Compute the expected calibration error of the labels above a small probability."""

import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.errors import ConfigError
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs
from surelabel.metrics.ece import ece, ece_per_class


def ece_of_candidates(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    threshold: float = 0.05,
) -> float:
    """Return ``ece`` over the candidates: the labels whose probability reaches ``threshold``.

    Most labels are easy negatives with a probability near 0, which make ``ece`` small.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.
        threshold: Smallest probability of a candidate, in [0, 1].

    Returns:
        Calibration error in [0, 1], where 0 is best. If no candidate has a known target,
        the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
        ConfigError: If ``bins`` is not a whole number >= 1, or ``threshold`` is outside [0, 1].

    Source:
        None; ours: ``ece`` over the known targets of labels with a probability >= ``threshold``.

    Example:
        >>> round(ece_of_candidates([[0.01, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.4
    """
    candidates = _ece_candidate_mask(probabilities, targets, known, threshold)
    return ece(probabilities, targets, candidates, bins=bins)


def ece_of_candidates_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    threshold: float = 0.05,
) -> Array:
    """Return ``ece_of_candidates`` for each of the c classes, ``(c,)``.

    If no candidate of a class has a known target, the value of the class is NaN.

    Source:
        None; ours: see ``ece_of_candidates``, computed here for each column.
    """
    candidates = _ece_candidate_mask(probabilities, targets, known, threshold)
    return ece_per_class(probabilities, targets, candidates, bins=bins)


def _ece_candidate_mask(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    threshold: float,
) -> Flags:
    """Return True where the target is known and the probability reaches the threshold."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]; got {threshold}.")
    p, _, known = validate_probability_metric_inputs(probabilities, targets, known)
    return known & (p >= threshold)
