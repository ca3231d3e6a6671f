"""Parse the elements of MATLAB files of version 5 to 7.2, which are untrusted.

``scipy.io.loadmat`` is not used, because some damaged files end the process.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from surelabel.arrays import Array

HEADER_BYTES = 128
MAX_BYTES = 2**31  # of a variable after decompression
MAX_DEPTH = 16

_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCTURE, _CHARACTERS = 1, 2, 4
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX = 0x0800
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}


@dataclass(frozen=True)
class MatlabCells:
    """Cell array, or structure array.

    Attributes:
        values: Values of the cells in the order of the file, or of the fields of each structure.
        n_fields: Number of fields of a structure; 0 for a cell array.
    """

    values: "list[MatlabValue]"
    n_fields: int = 0


MatlabValue = Array | str | MatlabCells


class _Element(NamedTuple):
    kind: int
    content: memoryview
    end: int  # offset of the next element


def parse_matlab_variables(content: bytes) -> Iterator[tuple[str, MatlabValue]]:
    """Yield the name and the value of each variable of a MATLAB file.

    Args:
        content: Bytes of the file.

    Raises:
        ValueError: If the bytes are no MATLAB file of version 5 to 7.2, or if they are damaged. The
            message states the reason.
    """
    orders = {b"IM": "<", b"MI": ">"}
    if len(content) < HEADER_BYTES or content[126:128] not in orders:
        raise ValueError("there is no header of version 5")
    order = orders[content[126:128]]
    version = int(np.frombuffer(content, f"{order}u2", 1, 124)[0])
    if version != 0x0100:
        raise ValueError(f"the version is {version >> 8}.{version & 255}, not 1.0")
    data, offset = memoryview(content), HEADER_BYTES
    while offset < len(data):
        element = _read_element(data, offset, order)
        offset, kind, value = element.end, element.kind, element.content
        if kind == _COMPRESSED:
            unpacked = _read_element(memoryview(_decompress(value)), 0, order)
            kind, value = unpacked.kind, unpacked.content
        if kind != _MATRIX:
            raise ValueError(f"a variable has the element type {kind}")
        yield _parse_matrix(value, order, 0)


def _read_element(data: memoryview, offset: int, order: str) -> _Element:
    """Return an element, whose content has at most four bytes if it is in the tag."""
    if offset + 8 > len(data):
        raise ValueError("an element has no complete tag")
    kind, n_bytes = (int(word) for word in np.frombuffer(data, f"{order}u4", 2, offset))
    start, end = offset + 8, offset + 8 + n_bytes
    if kind >> 16:
        n_bytes, kind = kind >> 16, kind & 0xFFFF
        start, end = offset + 4, offset + 8
        if n_bytes > 4:
            raise ValueError(f"a small element has {n_bytes} bytes")
    elif kind != _COMPRESSED:
        end += -n_bytes % 8
    if start + n_bytes > len(data):
        raise ValueError(f"an element has {n_bytes} bytes, and {len(data) - start} follow")
    return _Element(kind, data[start : start + n_bytes], end)


def _decompress(content: memoryview) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        unpacked = decompressor.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"a variable cannot be decompressed ({error})") from error
    if not decompressor.eof:
        raise ValueError("a compressed variable is incomplete or too large")
    return unpacked


def _parse_matrix(content: memoryview, order: str, depth: int) -> tuple[str, MatlabValue]:
    """Return the name and the value of an array, a text, a cell array or a structure array."""
    if not len(content):
        return "", np.zeros((0, 0))
    if depth > MAX_DEPTH:
        raise ValueError(f"cell arrays are nested more than {MAX_DEPTH} times")
    flags = _read_element(content, 0, order)
    shape = _read_element(content, flags.end, order)
    name = _read_element(content, shape.end, order)
    words = _numbers(flags, order)
    sides = [int(side) for side in _numbers(shape, order)]
    if words.dtype.kind != "u" or words.size != 2 or len(sides) < 2 or min(sides) < 0:
        raise ValueError("a variable has no valid flags or shape")
    class_number, n = int(words[0]) & 0xFF, prod(sides)
    value: MatlabValue
    if class_number == _CELL:
        value = MatlabCells(_parse_cells(content, name.end, n, order, depth))
    elif class_number == _STRUCTURE:
        length = _read_element(content, name.end, order)
        names = _read_element(content, length.end, order)
        lengths = _numbers(length, order)
        if lengths.size != 1 or lengths[0] < 1 or len(names.content) % int(lengths[0]):
            raise ValueError("a structure has no valid names of fields")
        n_fields = len(names.content) // int(lengths[0])
        cells = _parse_cells(content, names.end, n * n_fields, order, depth)
        value = MatlabCells(cells, n_fields)
    elif class_number == _CHARACTERS:
        value = _text(_read_element(content, name.end, order), sides, order)
    elif class_number in _NUMERIC_CLASSES and not int(words[0]) & _COMPLEX:
        numbers = _numbers(_read_element(content, name.end, order), order)
        if numbers.size != n:
            raise ValueError(f"an array has {numbers.size} numbers and the shape {tuple(sides)}")
        value = numbers.reshape(sides, order="F")
    else:
        raise ValueError(f"arrays of the class {class_number}, or of complex numbers, are not read")
    return bytes(name.content).decode("latin-1"), value


def _parse_cells(
    content: memoryview, offset: int, n: int, order: str, depth: int
) -> list[MatlabValue]:
    if n * 8 > len(content) - offset:
        raise ValueError(f"a cell array has {n} cells, and {len(content) - offset} bytes follow")
    values = []
    for _ in range(n):
        element = _read_element(content, offset, order)
        if element.kind != _MATRIX:
            raise ValueError(f"a cell has the element type {element.kind}")
        values.append(_parse_matrix(element.content, order, depth + 1)[1])
        offset = element.end
    return values


def _numbers(element: _Element, order: str) -> Array:
    if element.kind not in _NUMBERS:
        raise ValueError(f"numbers have the element type {element.kind}")
    dtype = np.dtype(order + _NUMBERS[element.kind])
    if len(element.content) % dtype.itemsize:
        raise ValueError(f"numbers have {len(element.content)} bytes")
    return np.frombuffer(element.content, dtype)


def _text(element: _Element, sides: list[int], order: str) -> str:
    if element.kind not in _TEXTS:
        raise ValueError(f"a text has the element type {element.kind}")
    if min(sides) and (len(sides) > 2 or sides[0] != 1):
        raise ValueError(f"a text has the shape {tuple(sides)}, and not one row")
    encoding = _TEXTS[element.kind]
    if encoding == "utf-16":
        encoding += "-le" if order == "<" else "-be"
    try:
        return bytes(element.content).decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"a text is not {encoding}") from error
