"""Precomputed image features with labels in NumPy archives (``.npz``)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.array_files import read_arrays
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledFeatures

REQUIRED_KEYS = ("features", "targets", "names")
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class FeatureArchive:
    """Content of a feature archive.

    Attributes:
        all_rows: Features and labels of all rows of the archive.
        splits: Features and labels of each split in the archive, by name: ``train``,
            ``validation`` or ``test``.
    """

    all_rows: LabelledFeatures
    splits: dict[str, LabelledFeatures]


def read_feature_archive(path: str | Path) -> FeatureArchive:
    """Read image features, targets and labels from an ``.npz`` file.

    The file contains the arrays ``features`` ``(n, d)``, ``targets`` ``(n, c)`` and ``names``
    ``(c,)``. If a target is NaN, the target is unknown. An optional array ``part`` ``(n,)``
    contains ``train``, ``validation`` or ``test`` for each row.

    Raises:
        DataError: If the file cannot be read without pickle, if an array is missing, or if an array
            has a wrong type, shape or value.
    """
    arrays = _load_feature_archive_arrays(Path(path))
    for key in ("features", "targets"):
        if arrays[key].ndim != 2 or arrays[key].dtype.kind not in "biuf":
            raise DataError(
                f"{key} in {path} must be numbers with one row per image; got shape "
                f"{arrays[key].shape} of type {arrays[key].dtype}. Save the array again with "
                "numpy.savez."
            )
    row_names = [f"{Path(path).name}, row {i}" for i in range(len(arrays["features"]))]
    names = _decode_feature_archive_strings(arrays["names"])
    try:
        all_rows = LabelledFeatures(arrays["features"], names, arrays["targets"], paths=row_names)
    except InputError as error:
        raise DataError(f"{path} must contain valid features and targets: {error}") from error
    split_names = _decode_feature_archive_strings(arrays["part"]) if "part" in arrays else None
    if split_names is None:
        return FeatureArchive(all_rows, {})
    if len(split_names) != len(all_rows) or not set(split_names) <= set(SPLITS):
        raise DataError(
            f"part must be one of {', '.join(SPLITS)} for each of {len(all_rows)} rows; {path} has "
            f"{len(split_names)} values: {', '.join(sorted(set(split_names))[:5])}. Correct the "
            "array and save it again."
        )
    rows = {name: np.flatnonzero(np.array(split_names) == name) for name in SPLITS}
    return FeatureArchive(all_rows, {name: all_rows.take(r) for name, r in rows.items() if len(r)})


def _load_feature_archive_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    return read_arrays(
        path,
        REQUIRED_KEYS,
        optional_keys=("part",),
        kind="a feature archive",
        remedy=f"Save {', '.join(REQUIRED_KEYS)} with numpy.savez as plain arrays, not as objects.",
    )


def _decode_feature_archive_strings(array: npt.NDArray[Any]) -> list[str]:
    """Return the strings of an array, which NumPy stores as text or as bytes."""
    flat = np.atleast_1d(array).ravel().tolist()
    return [w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w) for w in flat]
