"""Write ``.npy`` files of a shard part by part, without a memory map.

If the disk is full, writing through a memory map would crash the process instead of raising an
error.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from surelabel.files import atomic_file

AppendLines = Callable[[npt.NDArray[Any]], None]


@contextmanager
def open_shard_array(file: Path, width: int, dtype: npt.DTypeLike) -> Iterator[AppendLines]:
    """Yield a function that appends a line, or a block of lines, to a new ``.npy`` file.

    A temporary file is written, and renamed at the end of the ``with`` block unless an error is
    raised.

    Args:
        file: Path of the new file.
        width: Number of elements in a line.
        dtype: Data type of the array, to which the lines are converted.

    Raises:
        DataError: If the file cannot be written.
    """
    n_values = 0
    with atomic_file(file) as temporary, temporary.open("wb") as stream:

        def append(lines: npt.NDArray[Any]) -> None:
            nonlocal n_values
            values = np.ascontiguousarray(lines, dtype)
            stream.write(values.data)
            n_values += values.size

        _write_header(stream, (0, width), dtype)
        yield append
        stream.seek(0)
        _write_header(stream, (n_values // max(width, 1), width), dtype)


def write_shard_array(
    file: Path, width: int, dtype: npt.DTypeLike, parts: Iterable[npt.ArrayLike]
) -> None:
    """Write a ``.npy`` file of lines part by part.

    Args:
        file: Path of the new file.
        width: Number of elements in a line.
        dtype: Data type of the array, to which the lines are converted.
        parts: Lines of the array, or blocks of lines, in order.

    Raises:
        DataError: If the file cannot be written.
    """
    with open_shard_array(file, width, dtype) as append:
        for part in parts:
            append(np.asarray(part))


def _write_header(stream: IO[bytes], shape: tuple[int, int], dtype: npt.DTypeLike) -> None:
    """Write the header of an array; the header has the same length for any number of lines."""
    description = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": description, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
