"""What decisions are made from, checked once at the border."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.errors import ConfigError, InputError
from surelabel.records import Array, Flags, checked_targets
from surelabel.shapes import check_shapes


def checked_decisions(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Probabilities, targets (0 where unknown) and what is known, each ``(n, c)``.

    Raises:
        InputError: shapes differ, a logit is NaN or infinite, a known target lies outside [0, 1],
            or nothing is known at all.
    """
    logits = np.asarray(logits, dtype=np.float64)
    targets, known = checked_targets(targets, known)
    check_shapes(logits=(logits, "n c"), targets=(targets, "n c"))
    if not np.isfinite(logits).all():
        raise InputError(
            f"logits must be finite numbers. Got {(~np.isfinite(logits)).sum()} that are not; "
            "drop the pictures they come from."
        )
    if not known.any():
        raise InputError(
            f"At least one label of one picture must be known. Got {len(known)} pictures and "
            "nothing known; label some."
        )
    probabilities: Array = expit(logits)
    return probabilities, targets, known


def check_share(name: str, value: float) -> None:
    """Refuse a share that is not above 0 and below 1.

    Raises:
        ConfigError: ``value`` lies outside (0, 1).
    """
    if not 0 < value < 1:
        raise ConfigError(
            f"{name} must be a share above 0 and below 1, such as 0.9 for 90 %. Got {value}."
        )
