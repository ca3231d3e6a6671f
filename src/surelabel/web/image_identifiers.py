"""Define the identifiers of indexed images in URLs, which contain no path.

An identifier such as ``0-17-3f2a9c0d1e5b7a46`` consists of the number of the shard, the row number
and a checksum of the path. If the index is replaced, and the row contains another image, the
checksum does not match, and the identifier is unknown.
"""

import os
import re
from hashlib import blake2b
from typing import NamedTuple

from surelabel.errors import UnknownName

CHECKSUM_BYTES = 8
_IDENTIFIER = re.compile(r"(\d{1,9})-(\d{1,12})-([0-9a-f]{16})", re.ASCII)


class ImageIdentifier(NamedTuple):
    """Identifier of an image: number of the shard, row number, and checksum of the path."""

    shard: int
    row: int
    checksum: str

    def __str__(self) -> str:
        """Return the identifier as it occurs in URLs."""
        return f"{self.shard}-{self.row}-{self.checksum}"


def parse_image_identifier(text: str) -> ImageIdentifier:
    """Return the parts of an identifier.

    Raises:
        UnknownName: If the text is not an identifier.

    Example:
        >>> parse_image_identifier("0-17-3f2a9c0d1e5b7a46").row
        17
    """
    match = _IDENTIFIER.fullmatch(text)
    if match is None:
        raise unknown_image_error(text)
    return ImageIdentifier(int(match[1]), int(match[2]), match[3])


def image_path_checksum(path: str) -> str:
    """Return the checksum of the absolute path of an image in hexadecimal."""
    return blake2b(os.fsencode(path), digest_size=CHECKSUM_BYTES).hexdigest()


def unknown_image_error(text: str) -> UnknownName:
    """Return the error for an identifier that is not in the index."""
    return UnknownName(
        f"The image {text[:40]!r} is not in the index, or the index was replaced. Search again for "
        "the current identifier."
    )
