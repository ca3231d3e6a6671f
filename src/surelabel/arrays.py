"""This module defines NumPy array types, the limit of logits, and the validation of targets."""

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.shapes import check_shapes

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
ColumnIndices = npt.NDArray[np.intp]
LOGIT_LIMIT = 40.0  # logits are clipped to [-40, 40], about the range of a float64 sigmoid


def validate_target_arrays(
    targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Flags]:
    """Return targets as float64 in [0, 1] and a mask of the known targets.

    Args:
        targets: Targets in [0, 1], ``(n, c)``. If a target is NaN, the target is unknown.
        known: Mask of known targets with values True (1) or False (0), ``(n, c)``. If None, all
            targets except NaN are known.

    Returns:
        Targets ``(n, c)``, in which unknown targets are 0, and the Boolean mask of known targets
        ``(n, c)``.

    Raises:
        InputError: If a known target is outside [0, 1], if a value of ``known`` is neither True
            nor False, or if ``targets`` and ``known`` do not have one shape ``(n, c)``.
    """
    given = np.asarray(targets)
    values = np.array(given, dtype=np.float64)
    is_whole = given.dtype.kind in "biu"  # Booleans and integers are never NaN
    is_known = np.ones(values.shape, bool) if is_whole else ~np.isnan(values)
    if known is not None:
        flags = np.asarray(known)
        check_shapes(targets=(values, "n c"), known=(flags, "n c"))
        if flags.dtype != bool and not (is_flag := np.isin(flags, (0, 1))).all():
            raise InputError(
                f"known must be True or False for each target; got {flags[~is_flag][0]}."
            )
        is_known = is_known & flags.astype(bool)
    check_shapes(targets=(values, "n c"), known=(is_known, "n c"))
    if not is_known.all():
        values[~is_known] = 0
    if values.size and (values.min() < 0 or values.max() > 1):
        row, column = np.argwhere((values < 0) | (values > 1))[0]
        raise InputError(
            f"targets must be in [0, 1], where 1 is positive; got {values[row, column]} in row "
            f"{row}, column {column} (counted from 0). Use NaN, or known=False, for unknown "
            "targets."
        )
    return values, is_known


def validate_targets_to_read(
    targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Flags]:
    """Return targets and known targets like ``validate_target_arrays``, but copy only if necessary.

    Float64 targets and a Boolean mask are returned without a copy if the targets are valid and
    unknown targets are 0. Therefore, the caller must not modify the returned arrays.

    Args:
        targets: Targets in [0, 1], ``(n, c)``. If a target is NaN, the target is unknown.
        known: Mask of known targets, ``(n, c)``. If None, all targets except NaN are known.

    Raises:
        InputError: Under the conditions of ``validate_target_arrays``.
    """
    if isinstance(targets, np.ndarray) and isinstance(known, np.ndarray):
        has_types = targets.dtype == np.float64 and known.dtype == bool
        has_shapes = targets.ndim == 2 and targets.shape == known.shape
        is_valid = has_types and has_shapes and _are_in_unit_range(targets)
        if is_valid and (known.all() or not targets[~known].any()):
            return targets, known
    return validate_target_arrays(targets, known)


def _are_in_unit_range(targets: Array) -> bool:
    """Return whether all targets are in [0, 1]; return False if a target is NaN."""
    return bool(targets.min(initial=0) >= 0 and targets.max(initial=1) <= 1)
