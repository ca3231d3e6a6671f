"""What calibrators take, checked once at the border."""

from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError, InputError
from surelabel.records import Array, checked_targets
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


def known_decisions(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """Logits and targets of all known decisions of all labels together, each flat.

    Raises:
        InputError: shapes differ, a value is not what it must be, or no decision is positive,
            or none negative, so that nothing can be learnt from them.
    """
    logits = checked_logits(logits)
    targets, known = checked_targets(targets, known)
    check_shapes(logits=(logits, "n c"), targets=(targets, "n c"))
    x, y = logits[known], targets[known]
    if not 0 < y.sum() < y.size:
        raise InputError(
            f"Calibration needs known labels that are present and known labels that are absent. "
            f"Got {y.sum():g} present among {y.size} known; label more pictures."
        )
    return x, y


def smoothed(y: Array) -> Array:
    """Targets a little away from 0 and 1, so that a few decisions make nothing certain.

    Present counts as (P + 1) / (P + 2) and absent as 1 / (N + 2), with P present and N absent
    decisions; graded targets lie between the two.
    """
    present = y.sum()
    most, least = (present + 1) / (present + 2), 1 / (y.size - present + 2)
    shrunk: Array = least + (most - least) * y
    return shrunk


def checked_state(state: dict[str, Any], *names: str) -> dict[str, float]:
    """The numbers of these names in a saved state.

    Raises:
        DataError: one is missing, too many, or not a finite number.
    """
    right = state.keys() == set(names)
    if not right or not all(isinstance(v, int | float) and np.isfinite(v) for v in state.values()):
        raise DataError(
            f"A saved calibration must hold finite numbers for {', '.join(names)} and nothing "
            f"else. Got {state}; calibrate again."
        )
    return {name: float(state[name]) for name in names}
