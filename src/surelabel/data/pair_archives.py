"""Read precomputed vectors of images and captions from NumPy archives (``.npz``)."""

import zipfile
from pathlib import Path

from surelabel.array_files import read_arrays
from surelabel.errors import DataError, InputError
from surelabel.records import PairFeatures

REQUIRED_KEYS = ("image_features", "text_features", "image_rows")


def read_pair_archive(path: str | Path) -> PairFeatures:
    """Read vectors of images and captions from an ``.npz`` file.

    The file contains the arrays ``image_features`` ``(n, d)``, ``text_features`` ``(s, e)``, and
    ``image_rows`` ``(s,)``, the row of the image of each caption. The widths d and e can differ.

    Raises:
        DataError: If the file cannot be read without pickle, if an array is missing, or if an array
            has a wrong type, shape or value.
    """
    arrays = read_arrays(
        path,
        REQUIRED_KEYS,
        kind="an archive of pairs",
        remedy="Save plain arrays, not objects: numpy.savez(FILE, image_features=…, "
        "text_features=…, image_rows=…).",
    )
    for key in ("image_features", "text_features"):
        if arrays[key].ndim != 2 or arrays[key].dtype.kind not in "biuf":
            raise DataError(
                f"{key} in {path} must be a two-dimensional array of numbers with one row per "
                f"vector; got shape {arrays[key].shape} and type {arrays[key].dtype}. Correct the "
                "array and save it again with numpy.savez."
            )
    try:
        return PairFeatures(arrays["image_features"], arrays["text_features"], arrays["image_rows"])
    except InputError as error:
        raise DataError(f"{path} contains invalid vectors or rows: {error}") from error


def is_pair_archive(path: str | Path) -> bool:
    """Return whether an ``.npz`` file has vectors of captions; False for a damaged file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "text_features.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
