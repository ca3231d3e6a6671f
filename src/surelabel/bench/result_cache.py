"""Cache comparison results on disk, so that an interrupted comparison can be resumed."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.array_files import read_arrays
from surelabel.arrays import Array
from surelabel.errors import DataError
from surelabel.file_readers import read_json
from surelabel.files import atomic_file

_COMPUTE_AGAIN = "Remove the file and run the command again."


class ResultCache:
    """Cache of results in a folder, keyed by a hash of the data and settings of each result.

    The hash does not include the code. After a change of a loss or a metric, use a new folder.

    Args:
        folder: Folder of the cached files, which is created when the first file is written.

    Attributes:
        n_computed: Number of array results that were computed because they were not cached.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.n_computed = 0

    def load_or_compute_arrays(
        self,
        *key: object,
        shapes: Mapping[str, tuple[int, ...]],
        compute: Callable[[], Mapping[str, Any]],
    ) -> dict[str, Array]:
        """Load arrays from the cache. If they are not cached, compute and store them.

        Args:
            key: Data and settings that the arrays depend on.
            shapes: Shape of each array, by name.
            compute: Function that computes the arrays and returns them by name.

        Raises:
            DataError: If a file of the cache is damaged or cannot be written.
        """
        path = self.folder / f"{_result_cache_key_hash(*key)}.npz"
        if not path.exists():
            computed = compute()
            with atomic_file(path) as temporary, temporary.open("wb") as file:
                np.savez(file, **computed)
            self.n_computed += 1
        stored = read_arrays(path, list(shapes), remedy=_COMPUTE_AGAIN)
        try:
            arrays = {name: array.astype(float) for name, array in stored.items()}
        except (ValueError, TypeError) as error:
            raise _damaged_result_cache_error(path, error) from error
        stored_shapes = {name: array.shape for name, array in arrays.items()}
        if stored_shapes != shapes:
            reason = f"the arrays must have the shapes {dict(shapes)}; got {stored_shapes}"
            raise _damaged_result_cache_error(path, reason)
        return arrays

    def load_or_compute(self, *key: object, compute: Callable[[], Any]) -> Any:
        """Load a JSON value from the cache. If it is not cached, compute and store it.

        Args:
            key: Data and settings that the value depends on.
            compute: Function that computes and returns the value.

        Raises:
            DataError: If a file of the cache is damaged or cannot be written.
        """
        path = self.folder / f"{_result_cache_key_hash(*key)}.json"
        if path.exists():
            return read_json(path, remedy=_COMPUTE_AGAIN)
        value = compute()
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(value), encoding="utf-8")
        return value


def result_cache_digest(*values: str | npt.NDArray[Any]) -> str:
    """Return a hash of texts and of the values of arrays, for use in a cache key."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, str):
            digest.update(value.encode())
        else:
            digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def _result_cache_key_hash(*key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:20]


def _damaged_result_cache_error(path: Path, reason: object) -> DataError:
    return DataError(f"{path} is damaged ({reason}). {_COMPUTE_AGAIN}")
