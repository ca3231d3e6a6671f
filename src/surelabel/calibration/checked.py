"""What calibrators take, checked once at the border."""

from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError, DataError, InputError
from surelabel.records import Array, Flags, checked_targets
from surelabel.shapes import check_shapes


def checked_logits(logits: npt.ArrayLike) -> Array:
    """Logits, or raw scores, as float64 ``(n, c)``.

    Raises:
        InputError: they have other axes, or one is NaN or infinite.
    """
    logits = np.asarray(logits, dtype=np.float64)
    check_shapes(logits=(logits, "n c"))
    if not np.isfinite(logits).all():
        raise InputError(
            f"logits must be finite numbers. Got {(~np.isfinite(logits)).sum()} that are not; "
            f"drop the pictures they come from."
        )
    return logits


def known_matrix(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Logits, targets (0 where unknown) and what is known of them, each ``(n, c)``.

    Raises:
        InputError: shapes differ, a value is not what it must be, or no decision is positive,
            or none negative, so that nothing can be learnt from them.
    """
    logits = checked_logits(logits)
    targets, known = checked_targets(targets, known)
    check_shapes(logits=(logits, "n c"), targets=(targets, "n c"))
    present, count = targets.sum(), known.sum()  # a target is 0 where it is unknown
    if not 0 < present < count:
        raise InputError(
            "Fitting and calibrating need known labels that are present and known labels that are "
            f"absent. Got {present:g} present among {count} known; label more pictures, or take "
            "the names that their labels have."
        )
    return logits, targets, known


def known_decisions(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """Logits and targets of all known decisions of all labels together, each flat.

    Raises:
        InputError: as ``known_matrix``.
    """
    logits, targets, known = known_matrix(logits, targets, known)
    return logits[known], targets[known]


def smoothed(y: Array) -> Array:
    """Targets a little away from 0 and 1, so that a few decisions make nothing certain.

    Present counts as (P + 1) / (P + 2) and absent as 1 / (N + 2), with P present and N absent
    decisions; graded targets lie between the two.
    """
    present = y.sum()
    most, least = (present + 1) / (present + 2), 1 / (y.size - present + 2)
    shrunk: Array = least + (most - least) * y
    return shrunk


def checked_state(state: dict[str, Any], **axes: str) -> dict[str, Array]:
    """The numbers of these names in a saved state, each with the axes it must have, "" for none.

    Raises:
        DataError: one is missing, too many, not finite, or not of its shape.
    """
    refused = DataError(
        f"A saved calibration must hold finite numbers for {', '.join(axes)}, in lists of fitting "
        f"lengths, and nothing else. Got {shortened(repr(state))}; calibrate again."
    )
    if not isinstance(state, dict) or state.keys() != axes.keys():
        raise refused
    try:
        found = {name: np.asarray(state[name]) for name in axes}
        check_shapes(**{name: (found[name], axes[name]) for name in axes})
    except (ValueError, InputError) as error:  # lists of different lengths, or wrong ones
        raise refused from error
    if not all(v.size and v.dtype.kind in "iuf" and np.isfinite(v).all() for v in found.values()):
        raise refused
    return {name: value.astype(np.float64) for name, value in found.items()}


def shortened(text: str) -> str:
    """The start of a long text, for a message."""
    return text if len(text) <= 200 else f"{text[:200]}…"


def checked_amount(name: str, value: float) -> None:
    """Check a setting that counts decisions, or weighs as much as so many.

    Raises:
        ConfigError: it is not a finite number above 0.
    """
    if not (np.isfinite(value) and value > 0):
        raise ConfigError(f"{name} must be a finite number above 0. Got {value}.")


def check_labels(x: Array, count: int) -> None:
    """Check that scores ``(n, c)`` have the labels that were fitted.

    Raises:
        InputError: there are more or fewer.
    """
    if x.shape[1] != count:
        raise InputError(
            f"logits must have the {count} labels that each have a fitted part of their own. "
            f"Got {x.shape[1]}; calibrate again, or take shared_part() for other labels."
        )
