"""Read precomputed image features with labels from NumPy archives (``.npz``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.array_files import read_arrays
from surelabel.counts import format_count
from surelabel.data.labels.resolution.row_selection_cells import (
    CHOSEN_BY_COLUMN,
    PROBABILITY_COLUMN,
    SELECTION_COLUMNS,
)
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledFeatures, RowSelection

LABEL_KEYS = ("targets", "names")
REQUIRED_KEYS = ("features", *LABEL_KEYS)
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class FeatureArchive:
    """Content of a feature archive.

    Attributes:
        all_rows: Features and labels of all rows of the archive. If the labels were not read, there
            are no label columns.
        splits: Features and labels of each split with at least one row, by name: ``train``,
            ``validation`` or ``test``. If the archive has no array ``part``, the mapping is empty.
    """

    all_rows: LabelledFeatures
    splits: dict[str, LabelledFeatures]


def read_feature_archive(path: str | Path, *, with_labels: bool = True) -> FeatureArchive:
    """Read features, targets and labels from an ``.npz`` file.

    The file contains the arrays ``features`` ``(n, d)``, ``targets`` ``(n, c)`` and ``names``
    ``(c,)``. If a target is NaN, the target is unknown. An optional array ``part`` ``(n,)``
    contains ``train``, ``validation`` or ``test`` for each row, and an optional array ``paths``
    ``(n,)`` contains distinct identifiers of the rows. Optional arrays ``chosen_by`` and
    ``inclusion_probability`` ``(n,)`` state how each row was chosen; see :class:`RowSelection`.

    Args:
        path: Path of the file.
        with_labels: Whether the targets and labels are read. If False, the file needs only
            ``features``.

    Raises:
        DataError: If the file cannot be read without pickle, if an array is missing, or if an array
            has a wrong type, shape or value.
    """
    arrays = _load_feature_archive_arrays(
        Path(path), REQUIRED_KEYS if with_labels else ["features"]
    )
    for key in ("features", "targets"):
        if key in arrays:
            _check_feature_archive_numbers(path, key, arrays[key])
    n_rows = len(arrays["features"])
    row_names = _row_names_of_arrays(path, arrays, n_rows)
    names = _decode_feature_archive_strings(arrays["names"]) if with_labels else []
    if not with_labels:
        arrays["targets"] = np.empty((n_rows, 0))
    try:
        all_rows = LabelledFeatures(
            arrays["features"],
            names,
            arrays["targets"],
            paths=row_names,
            row_selection=_row_selection_of_arrays(arrays),
        )
    except InputError as error:
        raise DataError(f"{path} contains invalid features or targets: {error}") from error
    split_names = _decode_feature_archive_strings(arrays["part"]) if "part" in arrays else None
    if split_names is None:
        return FeatureArchive(all_rows, {})
    if len(split_names) != len(all_rows) or not set(split_names) <= set(SPLITS):
        raise DataError(
            f"The array part of {path} must contain {format_count(len(all_rows), 'value')}, each "
            f"one of {', '.join(SPLITS)}; got {len(split_names)} values: "
            f"{', '.join(sorted(set(split_names))[:5])}. Correct the array and save it again."
        )
    rows = {name: np.flatnonzero(np.array(split_names) == name) for name in SPLITS}
    return FeatureArchive(all_rows, {name: all_rows.take(r) for name, r in rows.items() if len(r)})


def _load_feature_archive_arrays(path: Path, keys: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    arguments = ", ".join(f"{key}=…" for key in keys)
    return read_arrays(
        path,
        keys,
        optional_keys=("part", "paths", *SELECTION_COLUMNS),
        kind="a feature archive",
        remedy=f"Save plain arrays, not objects: numpy.savez(FILE, {arguments}).",
    )


def _row_names_of_arrays(
    path: str | Path, arrays: dict[str, npt.NDArray[Any]], n_rows: int
) -> list[str]:
    """Return the array ``paths`` as texts, or else the file name with the number of each row.

    Raises:
        DataError: If the array does not contain one distinct text for each row.
    """
    if "paths" not in arrays:
        return [f"{Path(path).name}, row {i}" for i in range(n_rows)]
    row_names = _decode_feature_archive_strings(arrays["paths"])
    if len(row_names) != n_rows or len(set(row_names)) != n_rows:
        raise DataError(
            f"The array paths of {path} must contain {format_count(n_rows, 'distinct string')}, "
            f"one per row; got {len(set(row_names))} distinct strings among {len(row_names)}. "
            "Correct the array and save it again."
        )
    return row_names


def _row_selection_of_arrays(arrays: dict[str, npt.NDArray[Any]]) -> RowSelection | None:
    """Return how each row was chosen, or None if the archive does not state it.

    Raises:
        InputError: If only one of the arrays is given, or a value is invalid.
    """
    if not any(key in arrays for key in SELECTION_COLUMNS):
        return None
    if missing := [key for key in SELECTION_COLUMNS if key not in arrays]:
        raise InputError(
            f"The arrays {' and '.join(SELECTION_COLUMNS)} must be given together; {missing[0]} is "
            "missing. Add this array."
        )
    chosen_by = _decode_feature_archive_strings(arrays[CHOSEN_BY_COLUMN])
    return RowSelection(chosen_by, arrays[PROBABILITY_COLUMN])


def _check_feature_archive_numbers(path: str | Path, key: str, array: npt.NDArray[Any]) -> None:
    """Check that an array has numbers and two dimensions.

    Raises:
        DataError: If it does not.
    """
    if array.ndim == 2 and array.dtype.kind in "biuf":
        return
    remedy = f"Convert the array before saving: {key}.astype(float)."
    if array.dtype.kind in "biuf":
        column = "feature" if key == "features" else "label"
        remedy = f"Save one row per item and one column per {column}"
        remedy += f": for a single {column}, {key}.reshape(-1, 1)." if array.ndim == 1 else "."
    raise DataError(
        f"{key} in {path} must be a two-dimensional array of numbers; got an array of shape "
        f"{array.shape} and type {array.dtype}. {remedy}"
    )


def _decode_feature_archive_strings(array: npt.NDArray[Any]) -> list[str]:
    """Return the strings of an array, which NumPy stores as text or as bytes."""
    flat = np.atleast_1d(array).ravel().tolist()
    return [w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w) for w in flat]
