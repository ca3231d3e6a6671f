"""What was computed, on disk: one file each, so that a stopped comparison goes on."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.errors import DataError
from surelabel.files import new_file
from surelabel.records import Array, Flags

UNREADABLE = (OSError, EOFError, ValueError, KeyError, AttributeError, zipfile.BadZipFile)


class Cells:
    """What was computed, kept in a folder under the data and settings that it came from.

    Cells do not know the code that made them: after changing a loss or a metric, take a new folder.

    Args:
        folder: Where files are kept; made when it is not there.

    Attributes:
        computed: How often arrays were not there and had to be computed.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.computed = 0

    def arrays(
        self,
        *key: object,
        shapes: Mapping[str, tuple[int, ...]],
        otherwise: Callable[[], Mapping[str, Any]],
    ) -> dict[str, Array]:
        """Arrays that are dear to compute.

        Args:
            key: All that they depend on.
            shapes: Of each array by its name.
            otherwise: Computes them.

        Raises:
            DataError: a file is damaged, or none can be written.
        """
        path = self.folder / f"{_name(*key)}.npz"
        if not path.exists():
            made = otherwise()
            with new_file(path) as new, new.open("wb") as file:
                np.savez(file, **made)
            self.computed += 1
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = {name: file[name].astype(float) for name in shapes}
        except UNREADABLE as error:
            raise _damaged(path, error) from error
        if {name: array.shape for name, array in found.items()} != shapes:
            raise _damaged(path, "arrays of another shape")
        return found

    def value(self, *key: object, otherwise: Callable[[], Any]) -> Any:
        """A JSON value that is dear to compute, kept as arrays are."""
        path = self.folder / f"{_name(*key)}.json"
        if path.exists():
            try:
                return json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise _damaged(path, error) from error
        value = otherwise()
        with new_file(path) as new:
            new.write_text(json.dumps(value), encoding="utf-8")
        return value


def digest(*arrays: Array | Flags) -> str:
    """What tells arrays from others, for the key of a value."""
    text = hashlib.sha256()
    for array in arrays:
        text.update(np.ascontiguousarray(array).tobytes())
    return text.hexdigest()


def _name(*key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:20]


def _damaged(path: Path, why: object) -> DataError:
    return DataError(f"{path} is damaged ({why}). Remove it and run again.")
