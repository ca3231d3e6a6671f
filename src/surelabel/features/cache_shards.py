"""Read the files of the feature cache, each of which is a shard with arrays of equal shape."""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import safe_open

from surelabel.file_readers import check_regular_file, parse_json

CACHE_VERSION = "2"  # shards of other versions are deleted, and their features computed again
SUFFIX = ".safetensors"
MAX_BYTES_READ_AT_ONCE = 4 * 2**20  # rows of larger shards are read one by one


@dataclass(frozen=True)
class CacheShard:
    """Metadata of a shard, without the arrays.

    Attributes:
        path: Path of the file.
        fingerprint: Fingerprint of the encoder.
        kind: Kind of features.
        rows: Row of each array, by key.
        checksums: CRC-32 of each array, in the order of the rows.
        bytes: Size of the file in bytes.
    """

    path: Path
    fingerprint: str
    kind: str
    rows: dict[str, int]
    checksums: list[int]
    bytes: int


def cache_shard_names(folder: Path) -> set[str]:
    """Return the file names of the shards in a folder, or an empty set if it cannot be listed."""
    try:
        return {name for name in os.listdir(folder) if name.endswith(SUFFIX)}
    except OSError:
        return set()


def read_cache_shard(path: Path) -> CacheShard | None:
    """Return the metadata of a shard, or None if the shard is of another version.

    Shards are never changed. Therefore, the metadata of 256 shards stay in memory for all caches of
    the process. A file is read again if its inode, size or modification time differs.

    Args:
        path: Path of the file.

    Raises:
        OSError: If the file cannot be read.
        DataError: If the path is not a regular file.
        SafetensorError: If the file is damaged. Also KeyError, TypeError or ValueError.
    """
    check_regular_file(path)
    state = path.stat()
    return _read_metadata(path, state.st_ino, state.st_size, state.st_mtime_ns)


def read_cache_shard_arrays(
    shard: CacheShard, keys: Sequence[str]
) -> dict[str, npt.NDArray[np.float16]]:
    """Return arrays of a shard by key.

    Args:
        shard: Metadata of the shard.
        keys: Keys of the arrays, which must be in the shard.

    Raises:
        OSError: If the file cannot be read.
        DataError: If the path is not a regular file.
        SafetensorError: If the file is damaged. Also ValueError, if a checksum does not match.
        KeyError: If a key is not in the shard.
    """
    check_regular_file(shard.path)
    arrays = dict[str, npt.NDArray[np.float16]]()
    is_small = shard.bytes <= MAX_BYTES_READ_AT_ONCE
    with safe_open(shard.path, framework="numpy") as file:
        is_read_at_once = is_small and 4 * len(keys) >= len(shard.rows)
        values = (file.get_tensor if is_read_at_once else file.get_slice)("values")
        for key in keys:
            row = shard.rows[key]
            array = values[row : row + 1][0]
            if zlib.crc32(array.tobytes()) != shard.checksums[row]:
                raise ValueError("a checksum does not match")
            arrays[key] = array
    return arrays


@lru_cache(maxsize=256)
def _read_metadata(path: Path, inode: int, size: int, mtime: int) -> CacheShard | None:
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        if metadata is not None and metadata.get("version") != CACHE_VERSION:
            return None
        keys, checksums = parse_json(metadata["keys"]), parse_json(metadata["checksums"])
        if not len(keys) == len(checksums) == file.get_slice("values").get_shape()[0]:
            raise ValueError("the numbers of keys and values differ")
    return CacheShard(
        path=path,
        fingerprint=metadata["fingerprint"],
        kind=metadata["kind"],
        rows={key: row for row, key in enumerate(keys)},
        checksums=checksums,
        bytes=size,
    )
