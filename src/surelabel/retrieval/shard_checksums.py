"""Compute checksums of the arrays of a shard."""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

FOLD_BYTES = 1 << 13  # bytes per piece; a checksum of all bytes would be much slower


def shard_checksum(line: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of the XOR of all pieces of 8 KiB of an array, and of the remaining bytes.

    The probability that damage within 8 KiB remains undetected is about 2^-32. Larger damage also
    remains undetected if the changed bits of different pieces cancel.

    Args:
        line: Array of numbers, ``(n,)``.
    """
    values = np.ascontiguousarray(line).view(np.uint8)
    end = len(values) // FOLD_BYTES * FOLD_BYTES
    words = values[:end].view(np.uint32).reshape(-1, FOLD_BYTES // 4)
    folded = np.bitwise_xor.reduce(words, axis=0)
    return zlib.crc32(values[end:].data, zlib.crc32(folded.data))


def extend_shard_checksum(checksum: int, block: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of the bytes of an array, after bytes with a given checksum.

    Args:
        checksum: Checksum of all earlier bytes, or 0 without earlier bytes.
        block: Next part of the array.
    """
    return zlib.crc32(np.ascontiguousarray(block).view(np.uint8).data, checksum)
