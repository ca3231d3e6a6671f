"""Cache image and text features on disk.

The cache is a folder of shards: safetensors files that are written once and never changed, so that
several processes can read and write concurrently. A shard contains fp16 arrays of one fingerprint,
kind and shape, with a key and a checksum for each array.
"""

import hashlib
import json
import os
import time
import uuid
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import save_file

from surelabel.data.images import open_image_file
from surelabel.errors import DataError, InputError
from surelabel.features.cache_shards import (
    CACHE_VERSION,
    SUFFIX,
    CacheShard,
    cache_shard_names,
    read_cache_shard,
    read_cache_shard_arrays,
)
from surelabel.files import atomic_new_file
from surelabel.leftover_files import delete_leftovers_in

LIMIT_BYTES = 20 * 2**30

Float16Array = npt.NDArray[np.float16]


class CacheUsage(NamedTuple):
    """Number and size of cached arrays.

    Attributes:
        entries: Number of cached arrays.
        bytes: Size of the arrays on disk, in bytes.
    """

    entries: int
    bytes: int


@dataclass(frozen=True)
class CacheStatus:
    """Number and size of the arrays in a feature cache.

    Attributes:
        folder: Path of the cache folder.
        entries: Number of cached arrays.
        bytes: Size of the cache on disk, in bytes.
        limit_bytes: Maximum size of the cache in bytes. If the cache is larger, the oldest shards
            are deleted.
        per_fingerprint: Number and size of the arrays of each encoder, by encoder fingerprint.
    """

    folder: str
    entries: int
    bytes: int
    limit_bytes: int
    per_fingerprint: dict[str, CacheUsage] = field(default_factory=dict)


class FeatureCache:
    """Cache of arrays in a folder, keyed by encoder fingerprint, kind and content.

    Args:
        folder: Path of the cache folder, which is created on the first write.
        limit_bytes: Maximum size of the cache in bytes, >= 0. If the cache is larger, the oldest
            shards are deleted.

    Raises:
        InputError: If ``limit_bytes`` is negative.
    """

    def __init__(self, folder: str | Path, *, limit_bytes: int = LIMIT_BYTES):
        if limit_bytes < 0:
            raise InputError(f"limit_bytes must be 0 or more; got {limit_bytes}.")
        self.folder, self.limit_bytes = Path(folder), limit_bytes
        self._is_swept = False  # whether the temporary files of killed processes were deleted
        self._shards: dict[str, CacheShard] = {}
        self._ignored: set[str] = set()  # damaged or unreadable shards
        # (fingerprint, kind): key: name of the shard
        self._shard_names: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)

    def keys(self, fingerprint: str, kind: str) -> frozenset[str]:
        """Return the cached keys of an encoder fingerprint and a kind of features."""
        self._refresh_shards()
        return frozenset(self._shard_names[fingerprint, kind])

    def get(self, fingerprint: str, kind: str, keys: Iterable[str]) -> dict[str, Float16Array]:
        """Return the cached arrays by key, without keys that are not cached.

        Damaged shards are deleted with a warning.

        Args:
            fingerprint: Fingerprint of the encoder.
            kind: Kind of features, such as ``images``, ``patches`` or ``texts``.
            keys: Keys of the content, from :func:`content_hash_for_cache` or
                :func:`feature_cache_key_of_text`.
        """
        self._refresh_shards()
        shard_names = self._shard_names[fingerprint, kind]
        keys_of_shard: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            if key in shard_names:
                keys_of_shard[shard_names[key]].append(key)
        arrays: dict[str, Float16Array] = {}
        for name, shard_keys in keys_of_shard.items():
            arrays |= self._read_shard(name, shard_keys)
        return arrays

    def put(self, fingerprint: str, kind: str, arrays: Mapping[str, npt.ArrayLike]) -> None:
        """Store arrays in fp16, except arrays that are already cached.

        Each call writes one shard per array shape. Few calls with many arrays are therefore more
        efficient than many calls with few arrays. If the folder cannot be written, a warning is
        issued. If the cache then exceeds its limit, the oldest shards are deleted.

        Args:
            fingerprint: Fingerprint of the encoder.
            kind: Kind of features, such as ``images``, ``patches`` or ``texts``.
            arrays: Arrays to store, by key; all values must be finite in fp16.

        Raises:
            InputError: If an array is not finite in fp16.
        """
        if not self._is_swept:
            delete_leftovers_in(self.folder)
            self._is_swept = True
        self._refresh_shards()
        cached = self._shard_names[fingerprint, kind]
        by_shape: dict[tuple[int, ...], dict[str, Float16Array]] = defaultdict(dict)
        for key, array in arrays.items():
            if key not in cached:
                float16_array = _to_cacheable_float16(key, array)
                by_shape[float16_array.shape][key] = float16_array
        try:
            for new_arrays in by_shape.values():
                self._write_shard(fingerprint, kind, new_arrays)
        except DataError as error:
            warnings.warn(
                f"Features were not added to the cache {self.folder}: "
                f"{_cache_error_reason(error)}. "
                "The computation continues. "
                "Set SURELABEL_CACHE to use another folder.",
                stacklevel=2,
            )
        self._delete_oldest_shards()

    def status(self) -> CacheStatus:
        """Return the number and size of the cached arrays, in total and for each encoder.

        Raises:
            DataError: If the files of the folder cannot be listed.
        """
        self._check_folder()
        self._refresh_shards()
        entries: dict[str, set[tuple[str, str]]] = defaultdict(set)
        sizes: dict[str, int] = defaultdict(int)
        for shard in self._shards.values():
            entries[shard.fingerprint] |= {(shard.kind, key) for key in shard.rows}
            sizes[shard.fingerprint] += shard.bytes
        usage = {name: CacheUsage(len(entries[name]), sizes[name]) for name in sorted(sizes)}
        return CacheStatus(
            folder=str(self.folder),
            entries=sum(u.entries for u in usage.values()),
            bytes=sum(u.bytes for u in usage.values()),
            limit_bytes=self.limit_bytes,
            per_fingerprint=usage,
        )

    def clear(self) -> None:
        """Delete all shards and the temporary files of interrupted processes.

        Raises:
            DataError: If a file cannot be deleted.
        """
        for file in self.folder.glob(f"*{SUFFIX}"):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(
                    f"{file} cannot be deleted: {error.strerror}. Delete {self.folder} manually."
                ) from error
        delete_leftovers_in(self.folder, min_age=0)
        self._refresh_shards()

    def _check_folder(self) -> None:
        """Raise DataError if the folder exists and its files cannot be listed."""
        try:
            next(self.folder.iterdir(), None)
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(
                f"The cache {self.folder} cannot be read: {error.strerror}. Correct its "
                "permissions, or set SURELABEL_CACHE to another folder."
            ) from error

    def _refresh_shards(self) -> None:
        """Update the index of shards, which other processes can add and delete."""
        names = cache_shard_names(self.folder)
        self._remove_shards_from_index(self._shards.keys() - names)
        for name in sorted(names - self._shards.keys() - self._ignored):
            self._add_shard_to_index(name)

    def _remove_shards_from_index(self, names: Iterable[str]) -> None:
        for name in names:
            shard = self._shards.pop(name)
            shard_names = self._shard_names[shard.fingerprint, shard.kind]
            for key in shard.rows:
                if shard_names.get(key) == name:
                    del shard_names[key]

    def _add_shard_to_index(self, name: str) -> None:
        path = self.folder / name
        try:
            shard = read_cache_shard(path)
        except (OSError, DataError):
            self._ignored.add(name)  # deleted by another process meanwhile, or not readable
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            self._delete_damaged_shard(path, error)
        else:
            if shard is None:
                self._delete_shard_file(path)
                return
            self._shards[name] = shard
            self._shard_names[shard.fingerprint, shard.kind] |= dict.fromkeys(shard.rows, name)

    def _read_shard(self, name: str, keys: Sequence[str]) -> dict[str, Float16Array]:
        shard = self._shards[name]
        try:
            return read_cache_shard_arrays(shard, keys)
        except (OSError, DataError):
            self._remove_shards_from_index([name])  # deleted by another process meanwhile
        except (SafetensorError, ValueError) as error:
            self._remove_shards_from_index([name])
            self._delete_damaged_shard(shard.path, error)
        return {}

    def _delete_shard_file(self, path: Path) -> None:
        self._ignored.add(path.name)
        with suppress(OSError):
            path.unlink(missing_ok=True)

    def _delete_damaged_shard(self, path: Path, error: Exception) -> None:
        self._delete_shard_file(path)
        warnings.warn(
            f"A damaged file of the cache was deleted: {path} ({error}). The features in this file "
            "are computed again.",
            stacklevel=2,
        )

    def _write_shard(self, fingerprint: str, kind: str, arrays: Mapping[str, Float16Array]) -> None:
        metadata = {
            "version": CACHE_VERSION,
            "fingerprint": fingerprint,
            "kind": kind,
            "keys": json.dumps(list(arrays)),
            "checksums": json.dumps([zlib.crc32(array.tobytes()) for array in arrays.values()]),
        }
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}{SUFFIX}"
        with atomic_new_file(self.folder / name) as temporary:
            save_file({"values": np.stack(list(arrays.values()))}, temporary, metadata)
        self._add_shard_to_index(name)

    def _delete_oldest_shards(self) -> None:
        """Delete the oldest shards until the size of the cache is within the limit."""
        self._refresh_shards()
        total = sum(shard.bytes for shard in self._shards.values())
        for name in sorted(self._shards):
            if total <= self.limit_bytes:
                return
            shard = self._shards[name]
            self._remove_shards_from_index([name])
            with suppress(OSError):
                shard.path.unlink(missing_ok=True)
            total -= shard.bytes


def _cache_error_reason(error: DataError) -> str:
    """Return the reason of a failed write, without the random name of the file."""
    cause = error.__cause__
    return (isinstance(cause, OSError) and cause.strerror) or str(error).rstrip(".")


def default_feature_cache_folder() -> Path:
    """Return the cache folder of the user.

    If the environment variable ``SURELABEL_CACHE`` is set, its value is the path of the folder.
    Otherwise, the folder is ``surelabel`` in ``XDG_CACHE_HOME``. If ``XDG_CACHE_HOME`` is not set,
    the folder is ``~/.cache/surelabel``.
    """
    if folder := os.environ.get("SURELABEL_CACHE"):
        return Path(folder).expanduser()
    xdg_folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg_folder) if xdg_folder else Path.home() / ".cache") / "surelabel"


def content_hash_for_cache(source: str | Path | bytes) -> str:
    """Return the BLAKE2b hash of a file, or of the bytes of a file, as 32 hexadecimal digits.

    Raises:
        DataError: If the file cannot be read.
    """
    if isinstance(source, bytes):
        return hashlib.blake2b(source, digest_size=16).hexdigest()
    with open_image_file(source) as file:
        digest = hashlib.blake2b(digest_size=16)
        while block := file.read(2**18):
            digest.update(block)
        return digest.hexdigest()


@lru_cache(maxsize=2**14)  # scorers need the keys of all labels of the reference list
def feature_cache_key_of_text(template: str, name: str) -> str:
    """Return the cache key of a label with its prompt templates, as 32 hexadecimal digits.

    Args:
        template: Prompt templates, separated by line breaks.
        name: Label.
    """
    return hashlib.blake2b(json.dumps([template, name]).encode(), digest_size=16).hexdigest()


def _to_cacheable_float16(key: str, array: npt.ArrayLike) -> Float16Array:
    with np.errstate(over="ignore"):
        float16_array = np.array(array, dtype=np.float16, order="C")
    if not np.isfinite(float16_array).all():
        raise InputError(
            f"Arrays in the cache must be finite in fp16; got NaN, infinity or a value above "
            f"65,504 in the array of {key!r}. Use an encoder with other weights."
        )
    return float16_array
