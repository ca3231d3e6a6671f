"""Ready-made vectors with labels, as NumPy archives."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError, InputError
from surelabel.records import LabelledFeatures

WANTED = ("features", "targets", "names")
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Vectors:
    """What an archive holds.

    Attributes:
        whole: All rows.
        parts: Of ``train``, ``validation`` and ``test`` those that it names.
    """

    whole: LabelledFeatures
    parts: dict[str, LabelledFeatures]


def read_vectors(path: str | Path) -> Vectors:
    """Read an ``.npz`` with ``features`` (n d), ``targets`` (n c; NaN where unknown) and ``names``
    (c), and maybe ``part`` (n): ``train``, ``validation`` or ``test`` for each row.

    Raises:
        DataError: it cannot be read, needs pickle, or does not hold these.
    """
    found = _arrays(Path(path))
    for key in ("features", "targets"):
        if found[key].ndim != 2 or found[key].dtype.kind not in "biuf":
            raise DataError(
                f"{path} must hold {key} as numbers, one row each. Got "
                f"{found[key].shape} of {found[key].dtype}; save them again with numpy.savez."
            )
    rows = [f"{Path(path).name}, row {i}" for i in range(len(found["features"]))]
    names = _words(found["names"])
    try:
        whole = LabelledFeatures(found["features"], names, found["targets"], paths=rows)
    except InputError as error:
        raise DataError(f"{path} holds no labelled vectors: {error}") from error
    part = _words(found["part"]) if "part" in found else None
    if part is None:
        return Vectors(whole, {})
    if len(part) != len(whole) or not set(part) <= set(PARTS):
        raise DataError(
            f"part must name {', '.join(PARTS)} for each of {len(whole)} rows. {path} has "
            f"{len(part)} of {', '.join(sorted(set(part))[:5])}; correct it and save it again."
        )
    of = {name: np.flatnonzero(np.array(part) == name) for name in PARTS}
    return Vectors(whole, {name: whole.take(found) for name, found in of.items() if len(found)})


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    remedy = f"Save {', '.join(WANTED)} with numpy.savez, as plain arrays and not as objects."
    try:
        with path.open("rb") as stream:  # numpy leaves a damaged file open
            found = np.load(stream, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise ValueError("it holds one array, not several")
            return {key: found[key] for key in (*WANTED, *({"part"} & set(found.files)))}
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise DataError(
            f"{path} says that its arrays are larger than the memory there is. Save it again, or "
            "in parts."
        ) from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error.args[0]).rstrip(".")
        if "pickle.load()" in reason:  # what NumPy takes any other file for, and advises to load
            reason = "it is no .npz file"
        raise DataError(f"{path} is no archive of vectors: {reason}. {remedy}") from error


def _words(array: npt.NDArray[Any]) -> list[str]:
    """Texts, which NumPy keeps as such or as bytes."""
    flat = np.atleast_1d(array).ravel().tolist()
    return [w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w) for w in flat]
