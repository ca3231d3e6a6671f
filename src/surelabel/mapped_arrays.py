"""Store large arrays in temporary files without a name, which are mapped into memory.

The pages of a mapped array are not anonymous memory. Under memory pressure, the operating system
writes the pages to the file and reads them again. The file is deleted when no process uses it, even
if a process is killed.
"""

import os
import tempfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError

MIN_MAPPED_BYTES = 2**22  # smaller arrays stay in anonymous memory
BYTES_PER_BLOCK = 2**23  # bytes of an array that are written or converted at once
CACHED_BYTES = 2**18  # size of a block; several such blocks fit into the cache of a CPU core


def mapped_zeros(
    shape: int | tuple[int, ...], dtype: npt.DTypeLike, *, folder: str | Path | None = None
) -> npt.NDArray[Any]:
    """Return a writable array of zeros, which is in a temporary file if it has 4 MiB or more.

    Args:
        shape: Shape of the array.
        dtype: Type of the elements, without Python objects.
        folder: Folder on the disk for the file. If None, or if it cannot be written, the folder for
            temporary files is used.

    Raises:
        DataError: If the temporary file cannot be written, for example because the disk is full.

    Example:
        >>> mapped_zeros((2, 2), np.float32).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    sides = (shape,) if isinstance(shape, int) else shape
    n_bytes = prod(sides) * np.dtype(dtype).itemsize
    if n_bytes < MIN_MAPPED_BYTES:
        return np.zeros(sides, dtype)
    try:
        with _open_file_of_mapped_array(folder) as file:
            _allocate_file_of_mapped_array(file, n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=sides))
    except OSError as error:
        raise _mapped_array_error(n_bytes, error) from error


def to_mapped_array(
    array: npt.NDArray[Any], *, dtype: npt.DTypeLike | None = None, folder: str | Path | None = None
) -> npt.NDArray[Any]:
    """Return an array with the type ``dtype``, in a temporary file if it has 4 MiB or more.

    A smaller array stays in memory. If an array is small or already mapped, and has the type
    ``dtype``, it is returned without a copy.

    Args:
        array: Array of any shape.
        dtype: Type of the elements. If None, the type of the array is used.
        folder: Folder on the disk for the file, as for :func:`mapped_zeros`.

    Raises:
        DataError: If the temporary file cannot be written, for example because the disk is full.
    """
    dtype = array.dtype if dtype is None else np.dtype(dtype)
    if array.size * dtype.itemsize < MIN_MAPPED_BYTES:
        return np.asarray(array, dtype)
    if array.dtype == dtype and is_mapped_array(array):
        return array
    try:
        with _open_file_of_mapped_array(folder) as file:
            for rows in row_blocks(array, n_bytes=BYTES_PER_BLOCK):
                file.write(np.ascontiguousarray(array[rows], dtype).data.cast("B"))
            file.flush()
            return np.asarray(np.memmap(file, dtype, "r+", shape=array.shape))
    except OSError as error:
        raise _mapped_array_error(array.size * dtype.itemsize, error) from error


def is_mapped_array(array: npt.NDArray[Any]) -> bool:
    """Return whether the values of an array are in a file.

    Args:
        array: Array, or some rows of an array.
    """
    owner: object = array
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    return isinstance(owner, np.memmap)


def row_blocks(array: npt.NDArray[Any], *, n_bytes: int = BYTES_PER_BLOCK) -> Iterator[slice]:
    """Yield consecutive slices that cover all rows of an array, with about ``n_bytes`` each.

    Args:
        array: Array with n rows, ``(n, ...)``.
        n_bytes: Size of a block in bytes, above 0. A block has at least one row.

    Example:
        >>> list(row_blocks(np.zeros((3, 2))))
        [slice(0, 3, None)]
    """
    bytes_per_row = max(array.nbytes // max(len(array), 1), 1)
    n_rows = max(n_bytes // bytes_per_row, 1)
    for start in range(0, len(array), n_rows):
        yield slice(start, min(start + n_rows, len(array)))


def _open_file_of_mapped_array(folder: str | Path | None) -> BinaryIO:
    """Open a temporary file in a folder, or in the folder for temporary files."""
    if folder is not None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=folder)
        except OSError:
            pass  # the folder cannot be written
    return tempfile.TemporaryFile()


def _allocate_file_of_mapped_array(file: BinaryIO, n_bytes: int) -> None:
    """Reserve disk space, because a full disk would kill the process at a later access."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    zeros = bytes(BYTES_PER_BLOCK)
    for start in range(0, n_bytes, BYTES_PER_BLOCK):
        file.write(zeros[: n_bytes - start])
    file.flush()


def _mapped_array_error(n_bytes: int, error: OSError) -> DataError:
    return DataError(
        f"A temporary file of {n_bytes / 2**20:.0f} MiB cannot be written in "
        f"{tempfile.gettempdir()} or in the cache folder: {error.strerror}. Free disk space, or "
        "set TMPDIR and SURELABEL_CACHE to other folders."
    )
