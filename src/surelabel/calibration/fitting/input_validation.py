"""Validate the input and the saved state of calibrators."""

from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags, validate_targets_to_read
from surelabel.counts import format_count
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.mapped_arrays import to_mapped_array
from surelabel.shapes import check_shapes


def validate_calibrator_input(logits: npt.ArrayLike) -> Array:
    """Return logits or raw scores as a float64 array ``(n, c)``.

    Raises:
        InputError: If the axes are not ``(n, c)``, or if a value is NaN or infinite.
    """
    logits = np.asarray(logits, dtype=np.float64)
    check_shapes(logits=(logits, "n c"))
    if not np.isfinite(logits).all():
        raise InputError(
            "logits must be finite numbers; got "
            f"{format_count((~np.isfinite(logits)).sum(), 'NaN or infinite value')}. "
            "Remove the images with these values."
        )
    return logits


def validate_calibration_data(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Flags]:
    """Return logits, targets (0 where unknown) and a mask of known targets, each ``(n, c)``.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if a known target is outside
            [0, 1], or if the known targets contain no positive or no negative target.
    """
    logits = validate_calibrator_input(logits)
    targets, known = validate_targets_to_read(targets, known)
    check_shapes(logits=(logits, "n c"), targets=(targets, "n c"))
    if not contains_both_classes(targets, known):
        raise InputError(
            "The targets must contain at least one known positive and one known negative target; "
            f"got {targets.sum():g} positive among {known.sum()} known targets. Label more images."
        )
    return logits, targets, known


def contains_both_classes(targets: Array, known: Flags) -> bool:
    """Return whether the known targets are neither all 0 nor all 1.

    Args:
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.
    """
    return bool(0 < targets.sum() < known.sum())


def validate_and_flatten_calibration_data(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """Return the logits and the targets of the k known targets, ``(k,)`` each.

    Raises:
        InputError: If ``validate_calibration_data`` raises an InputError.
    """
    logits, targets, known = validate_calibration_data(logits, targets, known)
    if known.all():
        return logits.ravel(), targets.ravel()
    return to_mapped_array(logits[known]), to_mapped_array(targets[known])


def validate_calibrator_state(state: dict[str, Any], **axes: str) -> dict[str, Array]:
    """Return the arrays of a saved calibrator state, after validating the array names and axes.

    Args:
        state: Saved state of a calibrator.
        axes: Required axes of each array by name, in the notation of ``check_shapes``. For a single
            number, the axes are "".

    Raises:
        DataError: If a name is missing or unexpected, or if a value is not finite or has the
            wrong shape.
    """
    error = DataError(
        f"A saved calibration must contain finite numbers for {', '.join(axes)}, in lists of "
        "matching lengths, and nothing else; got "
        f"{truncate_calibrator_state(repr(state))}. Calibrate again."
    )
    if not isinstance(state, dict) or state.keys() != axes.keys():
        raise error
    try:
        arrays = {name: np.asarray(state[name]) for name in axes}
        check_shapes(**{name: (arrays[name], axes[name]) for name in axes})
    except (ValueError, InputError) as cause:  # lists of different lengths, or a wrong shape
        raise error from cause
    if not all(v.size and v.dtype.kind in "iuf" and np.isfinite(v).all() for v in arrays.values()):
        raise error
    return {name: value.astype(np.float64) for name, value in arrays.items()}


def truncate_calibrator_state(text: str) -> str:
    """Return a text for an error message, shortened to 200 characters and an ellipsis."""
    return text if len(text) <= 200 else f"{text[:200]}…"


def check_positive_calibrator_setting(name: str, value: float) -> None:
    """Check that a setting is a finite number above 0.

    Raises:
        ConfigError: If ``value`` is not finite or not above 0.
    """
    if not (np.isfinite(value) and value > 0):
        raise ConfigError(f"{name} must be a finite number above 0; got {value}.")


def check_calibrated_label_count(x: Array, count: int) -> None:
    """Check that ``x`` has one column for each of the ``count`` labels of the fitted calibrator.

    Raises:
        InputError: If the number of columns of ``x`` is not ``count``.
    """
    if x.shape[1] != count:
        raise InputError(
            f"logits must have the {format_count(count, 'label')} that the calibrator was fitted "
            f"on; got {format_count(x.shape[1], 'label')}. Calibrate again, or use "
            "shared_calibrator() for other labels."
        )
