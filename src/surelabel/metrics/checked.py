"""What metrics take, checked once at the border."""

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.records import Array, Flags, checked_targets
from surelabel.shapes import check_shapes


def checked_scores(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Flags, Flags]:
    """Scores, what is present and what is known, each ``(n, c)``; present implies known.

    Raises:
        InputError: shapes differ, a score is NaN or infinite, or a known target is not 0 or 1.
    """
    scores = np.asarray(scores, dtype=np.float64)
    wanted, known = checked_targets(targets, known)
    check_shapes(scores=(scores, "n c"), targets=(wanted, "n c"))
    if not np.isfinite(scores).all():
        raise InputError(
            f"scores must be finite numbers. Got {(~np.isfinite(scores)).sum()} that are not, the "
            f"first {scores[~np.isfinite(scores)][0]}; use known=False for what was not scored."
        )
    present = wanted == 1
    if np.count_nonzero(wanted) != np.count_nonzero(present):
        raise InputError(
            f"targets of a ranking metric must be 0 or 1. Got {wanted[~present].max()}; "
            f"round graded targets first, or use a metric of probabilities."
        )
    return scores, present, known


def checked_probabilities(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Probabilities, targets (0 where unknown) and what is known, each ``(n, c)``.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    targets, known = checked_targets(targets, known)
    check_shapes(probabilities=(probabilities, "n c"), targets=(targets, "n c"))
    if probabilities.size and not (probabilities.min() >= 0 and probabilities.max() <= 1):
        raise InputError(
            f"probabilities must lie in [0, 1] without NaN. Got {probabilities.min()} to "
            f"{probabilities.max()}; logits become probabilities by the sigmoid."
        )
    return probabilities, targets, known
