"""Brier score, and how much of it the model takes away from knowing the prevalence alone."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.blocks import blocks
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.records import Array


def brier(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Mean squared difference between probability and target over all known decisions.

        B = mean (p - y)²

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].

    Source:
        Brier, Verification of Forecasts Expressed in Terms of Probability, Monthly Weather
        Review, 1950.

    Differs:
        Counts the event only, not event and non-event, so it is half of Brier's.

    Example:
        >>> round(brier([[0.9, 0.2]], [[1, 0]]), 4)
        0.025
    """
    errors, _, count = _sums(probabilities, targets, known)
    return float(ratio(errors.sum(), count.sum()))


def brier_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """``brier`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``brier``, class by class.
    """
    errors, _, count = _sums(probabilities, targets, known)
    return ratio(errors, count)


def brier_skill(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Share of the Brier score of the prevalences that the model takes away.

        S = 1 - Σ (p - y)² / Σ (prevalence of the class - y)²

    The prevalence of each class is taken from the same known targets, so a model that learnt
    nothing but how frequent each class is gets about 0 and a perfect one 1.

    Args:
        probabilities: As for ``brier``.
        targets: As for ``brier``.
        known: As for ``brier``.

    Returns:
        A number up to 1, negative when worse than the prevalences; NaN when no class varies.

    Raises:
        InputError: as for ``brier``.

    Source:
        Murphy, Skill Scores Based on the Mean Square Error and Their Relationships to the
        Correlation Coefficient, Monthly Weather Review, 1988; reference: climatology.

    Example:
        >>> round(brier_skill([[0.9], [0.2]], [[1], [0]]), 4)
        0.9
    """
    errors, reference, _ = _sums(probabilities, targets, known)
    return float(1 - ratio(errors.sum(), reference.sum()))


def brier_skill_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """``brier_skill`` of every class, ``(c,)``; NaN where all known targets are the same.

    Source:
        As ``brier_skill``, class by class.
    """
    errors, reference, _ = _sums(probabilities, targets, known)
    return 1 - ratio(errors, reference)


def _sums(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Of each class ``(c,)``: squared errors, those of its prevalence, and known decisions."""
    p, y, known = checked_probabilities(probabilities, targets, known)
    errors, total, squares = np.zeros((3, p.shape[1]))
    count = known.sum(axis=0, dtype=float)
    for some_p, some_y, some_known in blocks(p, y, known):
        difference = (some_p - some_y) * some_known
        errors += np.einsum("nc,nc->c", difference, difference)
        squares += np.einsum("nc,nc->c", some_y, some_y)
        total += some_y.sum(axis=0)
    reference = squares - total * ratio(total, count)
    reference[~(reference > 1e-12 * squares)] = 0  # rounding, where all targets are the same
    return errors, reference, count
