"""Validate the input of thresholds, guarantees and risk-coverage curves."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.counts import format_count
from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes


def validate_decision_inputs(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Return probabilities, targets (0 where unknown) and a mask of known targets, each ``(n, c)``.

    Raises:
        InputError: If the shapes differ, if a logit is NaN or infinite, if a known target is
            outside [0, 1], or if no target is known.
    """
    logits = np.asarray(logits, dtype=np.float64)
    targets, known = validate_target_arrays(targets, known)
    check_shapes(logits=(logits, "n c"), targets=(targets, "n c"))
    if not np.isfinite(logits).all():
        raise InputError(
            "logits must be finite numbers; got "
            f"{format_count((~np.isfinite(logits)).sum(), 'NaN or infinite value')}. "
            "Remove the images with these values."
        )
    if not known.any():
        raise InputError(
            f"At least one target must be known; got {format_count(len(known), 'image')} without "
            "a known target. Label some images."
        )
    probabilities: Array = expit(logits)
    return probabilities, targets, known


def check_decision_setting_fraction(name: str, value: float) -> None:
    """Check that a setting is above 0 and below 1.

    Raises:
        ConfigError: If ``value`` is outside (0, 1).
    """
    if not 0 < value < 1:
        raise ConfigError(f"{name} must be above 0 and below 1, such as 0.9 for 90 %; got {value}.")
