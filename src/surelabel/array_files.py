"""Read arrays from .npy, .npz and safetensors files that can be damaged or untrusted.

Sizes in headers are compared with the size of the file before memory is allocated, and objects that
need pickle are refused. Each failure raises a DataError with a one-line message that contains the
path of the file.
"""

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from surelabel.errors import DataError
from surelabel.file_readers import (
    CHECK_PATH,
    COPY_AGAIN,
    check_regular_file,
    open_regular_file,
    quote_of_file,
    unreadable_file_error,
)
from surelabel.mapped_arrays import mapped_zeros

BYTES_PER_READ = 2**20
DEFLATE_RATIO = 1032  # maximum ratio of the sizes before and after compression in a zip file

_MAX_QUOTED_KEYS = 8  # keys of an .npz file in a message
_NPY_MAGIC = b"\x93NUMPY"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # methods of numpy.savez
_HEADER_ERRORS = (  # NumPy raises these errors or ValueError if a header is not a valid literal
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    SyntaxError,
    OverflowError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)
_NPY_ERRORS = (ValueError, TypeError, EOFError, OverflowError, MemoryError)
_NPZ_ERRORS = (
    *_NPY_ERRORS,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # another version of the zip format
    RuntimeError,  # an encrypted file
)
_SAFETENSORS_ERRORS = (
    SafetensorError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RuntimeError,  # an error that PyTorch raises
    MemoryError,
)


class _ArrayHeader(NamedTuple):
    """Header of an array in the ``.npy`` format."""

    shape: tuple[int, ...]
    is_fortran_order: bool
    dtype: np.dtype[Any]
    offset: int  # bytes before the values


def map_array(path: str | Path, *, remedy: str = COPY_AGAIN) -> npt.NDArray[Any]:
    """Return the array of a ``.npy`` file, mapped into memory for reading only.

    An empty array is not mapped.

    Args:
        path: Path of the file.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file cannot be read, is not a ``.npy`` file, contains objects, or its size
            differs from the size in its header.
    """
    with open_regular_file(path, remedy=remedy) as stream:
        try:
            header = _read_array_header(stream, os.fstat(stream.fileno()).st_size)
            if prod(header.shape) == 0:  # an empty array cannot be mapped
                return np.empty(header.shape, header.dtype)
            order: Literal["F", "C"] = "F" if header.is_fortran_order else "C"
            mapped = np.memmap(stream, header.dtype, "r", header.offset, header.shape, order)
            return np.asarray(mapped)
        except _NPY_ERRORS as error:
            raise _array_file_error(path, None, error, remedy) from error


def read_arrays(
    path: str | Path,
    keys: Sequence[str],
    *,
    optional_keys: Collection[str] = (),
    kind: str | None = None,
    remedy: str = COPY_AGAIN,
    max_bytes: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Return arrays of an ``.npz`` file by key.

    Args:
        path: Path of the file, as ``numpy.savez`` or ``numpy.savez_compressed`` writes it.
        keys: Keys of the arrays to read.
        optional_keys: Keys of arrays that are also read if the file contains them.
        kind: Expected kind of file for the error message, such as ``a feature archive``. Use None
            for a file that this package writes; the message then states that it is damaged.
        remedy: Last sentence of the error message.
        max_bytes: Maximum size of all arrays after decompression. If None, only the compression
            ratio is limited.

    Raises:
        DataError: If the file cannot be read, is not an ``.npz`` file, or is damaged or encrypted.
            If a key is missing. If an array contains objects. If the size of an array differs from
            the size in its header or exceeds the size that the file can contain. If the arrays are
            larger than ``max_bytes``.
    """
    with open_regular_file(path, remedy=remedy if kind is None else CHECK_PATH) as stream:
        try:
            if stream.read(len(_NPY_MAGIC)) == _NPY_MAGIC:
                raise ValueError("a file with one array instead of several arrays")
            size = os.fstat(stream.fileno()).st_size
            with zipfile.ZipFile(stream) as archive:
                present = _keys_of_npz_file(archive)
                if missing := [key for key in keys if key not in present]:
                    raise ValueError(_describe_missing_keys(missing, present))
                selected = [*keys, *(key for key in optional_keys if key in present)]
                n_bytes = sum(archive.getinfo(f"{key}.npy").file_size for key in selected)
                if max_bytes is not None and n_bytes > max_bytes:
                    raise ValueError(f"arrays of {n_bytes} bytes, more than {max_bytes} bytes")
                return {key: _read_npz_array(archive, key, size) for key in selected}
        except _NPZ_ERRORS as error:
            raise _array_file_error(path, kind, error, remedy) from error


def array_keys(path: str | Path, *, kind: str | None = None, remedy: str = COPY_AGAIN) -> list[str]:
    """Return the keys of the arrays of an ``.npz`` file, in the order of the file.

    Args:
        path: Path of the file.
        kind: Expected kind of file for the error message, as for :func:`read_arrays`.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file cannot be read or is not a zip file.
    """
    with open_regular_file(path, remedy=remedy if kind is None else CHECK_PATH) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return _keys_of_npz_file(archive)
        except _NPZ_ERRORS as error:
            raise _array_file_error(path, kind, error, remedy) from error


@contextmanager
def open_safetensors(
    path: str | Path,
    framework: Literal["numpy", "pt"],
    *,
    device: str = "cpu",
    remedy: str = COPY_AGAIN,
) -> Iterator[Any]:
    """Open a safetensors file, and raise errors inside the ``with`` block as DataError.

    Args:
        path: Path of the file.
        framework: Type of the arrays: ``numpy``, or ``pt`` for tensors of PyTorch.
        device: Device of the tensors.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file cannot be read or is damaged, or if an array or a key of the metadata
            is missing.
    """
    check_regular_file(path, remedy=remedy)
    try:
        with safe_open(path, framework=framework, device=device) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}. {remedy}") from error
    except DataError:
        raise
    except _SAFETENSORS_ERRORS as error:
        raise _array_file_error(path, None, error, remedy) from error


def read_safetensors(
    path: str | Path, framework: Literal["numpy", "pt"], *, remedy: str = COPY_AGAIN
) -> dict[str, Any]:
    """Return all arrays of a safetensors file by key.

    Args:
        path: Path of the file.
        framework: Type of the arrays: ``numpy``, or ``pt`` for tensors of PyTorch.
        remedy: Last sentence of the error message.

    Raises:
        DataError: If the file cannot be read or is damaged.
    """
    with open_safetensors(path, framework, remedy=remedy) as file:
        return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def _keys_of_npz_file(archive: zipfile.ZipFile) -> list[str]:
    """Return the keys of the arrays of an open ``.npz`` file, in the order of the file."""
    return [file.removesuffix(".npy") for file in archive.namelist() if file.endswith(".npy")]


def _describe_missing_keys(missing: Sequence[str], present: Sequence[str]) -> str:
    """Return a text that lists the missing keys and the keys that the file contains."""
    keys = ", ".join(map(quote_of_file, present[:_MAX_QUOTED_KEYS])) or "none"
    more = ", …" if len(present) > _MAX_QUOTED_KEYS else ""
    return f"missing keys: {', '.join(missing)}; keys of the file: {keys}{more}"


def _read_npz_array(archive: zipfile.ZipFile, key: str, archive_size: int) -> npt.NDArray[Any]:
    """Return an array of an open ``.npz`` file.

    Raises:
        ValueError: If the array is larger than the file can contain, or is not in the ``.npy``
            format. Other errors in ``_NPZ_ERRORS`` are possible.
    """
    info = archive.getinfo(f"{key}.npy")
    if info.compress_type not in _COMPRESSIONS:
        raise ValueError(f"{key} uses the unsupported compression method {info.compress_type}")
    if info.file_size > DEFLATE_RATIO * archive_size:
        raise ValueError(
            f"{key} declares {info.file_size} bytes, which a file of {archive_size} bytes cannot "
            "contain"
        )
    with archive.open(info) as stream:
        try:
            header = _read_array_header(stream, info.file_size)
        except ValueError as error:
            raise ValueError(f"in {key}: {error}") from error
        return _read_npz_values(stream, header)


def _read_npz_values(stream: IO[bytes], header: _ArrayHeader) -> npt.NDArray[Any]:
    """Read the values of an array from a stream; a large array is stored in a temporary file.

    Raises:
        ValueError: If the stream contains too few values. Other errors in ``_NPZ_ERRORS`` are
            possible.
    """
    order = -1 if header.is_fortran_order else 1
    array = mapped_zeros(header.shape[::order], header.dtype)
    values = array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
    n_read = 0
    while part := stream.read(BYTES_PER_READ):  # zipfile compares the checksum at the end
        values[n_read : n_read + len(part)] = np.frombuffer(part, np.uint8)
        n_read += len(part)
    if n_read != array.nbytes:
        raise ValueError(f"{n_read} bytes of values instead of {array.nbytes}")
    return array.T if header.is_fortran_order else array


def _read_array_header(stream: IO[bytes], size: int) -> _ArrayHeader:
    """Read the header of an array, and leave the stream at the first value.

    Args:
        stream: Stream at the start of the ``.npy`` format.
        size: Number of bytes of the header and the values.

    Raises:
        ValueError: If the array contains objects, or ``size`` differs from the size in the header.
    """
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"the unsupported version {version} of the .npy format")
    try:
        shape, is_fortran_order, dtype = readers[version](stream)
    except _HEADER_ERRORS as error:
        raise ValueError("Cannot parse header") from error
    if dtype.hasobject:
        raise ValueError("an array of objects, which needs pickle, instead of a plain array")
    if any(side < 0 for side in shape):
        raise ValueError(f"the shape {shape}")
    offset = stream.tell()
    declared = prod(shape) * dtype.itemsize
    if declared != size - offset:
        raise ValueError(
            f"an array whose header declares {declared} bytes, followed by {size - offset} bytes"
        )
    return _ArrayHeader(shape, is_fortran_order, dtype, offset)


def _array_file_error(
    path: str | Path, kind: str | None, error: Exception, remedy: str
) -> DataError:
    if isinstance(error, DataError):
        return error
    reason = str(error)
    if isinstance(error, MemoryError):
        reason = "an array that does not fit into memory"
    elif isinstance(error, zipfile.BadZipFile) and "not a zip file" in reason:
        reason = "a file that is not in the .npz format"
    return unreadable_file_error(path, kind, reason.strip() or type(error).__name__, remedy)
