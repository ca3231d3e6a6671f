"""Parse the header ``Range`` of a request for a part of a file."""

import re
from typing import NamedTuple

_SINGLE_RANGE = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII | re.IGNORECASE)


class ByteRange(NamedTuple):
    """Part of a file: position of the first byte, counted from 0, and number of bytes."""

    start: int
    n_bytes: int

    def content_range(self, size: int) -> str:
        """Return the header ``content-range`` of the part of a file of ``size`` bytes."""
        return f"bytes {self.start}-{self.start + self.n_bytes - 1}/{size}"


def parse_byte_range(header: str | None, size: int) -> ByteRange | None:
    """Return the part of a file that a client requests, or None for the whole file.

    A header with several ranges, another unit or another syntax is ignored, which RFC 9110 allows.
    A part that contains no byte of the file has the length 0.

    Args:
        header: Header ``Range``, such as ``bytes=0-99``, ``bytes=100-`` or ``bytes=-100``.
        size: Number of bytes of the file, >= 0.

    Example:
        >>> parse_byte_range("bytes=100-", 250), parse_byte_range("bytes=-100", 250)
        (ByteRange(start=100, n_bytes=150), ByteRange(start=150, n_bytes=100))
    """
    match = None if header is None else _SINGLE_RANGE.fullmatch(header)
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        n_bytes = min(int(match[2]), size)
        return ByteRange(size - n_bytes, n_bytes)
    start, end = int(match[1]), size if match[2] == "" else int(match[2]) + 1
    if end <= start and match[2] != "":
        return None
    return ByteRange(start, max(0, min(end, size) - start))
