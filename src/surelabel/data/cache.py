"""Arrays that were dear to compute, kept on disk: features of pictures and of texts.

The cache is a folder of shards: safetensors files that are written once, under a new name, and
never changed. Each holds fp16 arrays of one fingerprint, kind and shape, with their keys and a
checksum each. So several processes may read and write at once, and nothing is unpickled.
"""

import hashlib
import json
import os
import time
import uuid
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from surelabel.errors import DataError, InputError
from surelabel.files import new_file

LIMIT_BYTES = 20 * 2**30

Half = npt.NDArray[np.float16]


class Size(NamedTuple):
    """How much of something is kept."""

    entries: int
    bytes: int


@dataclass(frozen=True)
class CacheStatus:
    """What a cache holds.

    Attributes:
        folder: Where it is.
        entries: Arrays kept.
        bytes: On disk.
        limit_bytes: At which the oldest arrays go.
        per_fingerprint: The same for each encoder.
    """

    folder: str
    entries: int
    bytes: int
    limit_bytes: int
    per_fingerprint: dict[str, Size] = field(default_factory=dict)


@dataclass(frozen=True)
class _Shard:
    path: Path
    fingerprint: str
    kind: str
    rows: dict[str, int]
    checksums: list[int]
    bytes: int


class FeatureCache:
    """A bounded folder of arrays, keyed by what made them and what they were made of.

    Args:
        folder: Made when something is put into it.
        limit_bytes: The oldest shards are deleted when all together take more.
    """

    def __init__(self, folder: str | Path, *, limit_bytes: int = LIMIT_BYTES):
        if limit_bytes < 0:
            raise InputError(f"limit_bytes must be 0 or more. Got {limit_bytes}.")
        self.folder, self.limit_bytes = Path(folder), limit_bytes
        self._shards: dict[str, _Shard] = {}
        self._ignored: set[str] = set()  # shards that are damaged or may not be read
        self._places: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)  # key to shard

    def keys(self, fingerprint: str, kind: str) -> frozenset[str]:
        """The keys that are kept for a fingerprint and kind."""
        self._refresh()
        return frozenset(self._places[fingerprint, kind])

    def get(self, fingerprint: str, kind: str, keys: Iterable[str]) -> dict[str, Half]:
        """Read arrays.

        Args:
            fingerprint: Of the encoder that made them.
            kind: What they are: ``images``, ``patches``, ``texts`` …
            keys: Of what they were made: a :func:`content_hash` or a :func:`text_key`.

        Returns:
            Those that are kept and whole, by key. A damaged shard is deleted, with a warning.
        """
        self._refresh()
        places = self._places[fingerprint, kind]
        wanted: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            if key in places:
                wanted[places[key]].append(key)
        found: dict[str, Half] = {}
        for name, here in wanted.items():
            found |= self._read(name, here)
        return found

    def put(self, fingerprint: str, kind: str, arrays: Mapping[str, npt.ArrayLike]) -> None:
        """Keep arrays, in fp16; those that are kept already are left as they are.

        Args:
            fingerprint: Of the encoder that made them.
            kind: What they are.
            arrays: Key to array, finite also in fp16. One call writes one file a shape, so
                put many at a time. A folder that cannot be written is a warning.

        Raises:
            InputError: an array is not finite in fp16.
        """
        self._refresh()
        kept = self._places[fingerprint, kind]
        shapes: dict[tuple[int, ...], dict[str, Half]] = defaultdict(dict)
        for key, array in arrays.items():
            if key not in kept:
                half = _half(key, array)
                shapes[half.shape][key] = half
        try:
            for fresh in shapes.values():
                self._write(fingerprint, kind, fresh)
        except DataError as error:
            warnings.warn(
                f"Nothing was added to the cache: {error} Work goes on without it; "
                "SURELABEL_CACHE names another folder.",
                stacklevel=2,
            )
        self._trim()

    def status(self) -> CacheStatus:
        """How much is kept, in all and for each fingerprint."""
        self._refresh()
        entries: dict[str, set[tuple[str, str]]] = defaultdict(set)
        sizes: dict[str, int] = defaultdict(int)
        for shard in self._shards.values():
            entries[shard.fingerprint] |= {(shard.kind, key) for key in shard.rows}
            sizes[shard.fingerprint] += shard.bytes
        parts = {name: Size(len(entries[name]), sizes[name]) for name in sorted(sizes)}
        return CacheStatus(
            folder=str(self.folder),
            entries=sum(part.entries for part in parts.values()),
            bytes=sum(part.bytes for part in parts.values()),
            limit_bytes=self.limit_bytes,
            per_fingerprint=parts,
        )

    def clear(self) -> None:
        """Delete all that is kept, and what killed runs left half written.

        Raises:
            DataError: a file of the cache may not be deleted.
        """
        for file in (*self.folder.glob("*.safetensors"), *self.folder.glob(".*.safetensors.*.new")):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(
                    f"{file} cannot be deleted: {error.strerror}. Delete {self.folder} yourself."
                ) from error
        self._refresh()

    def _refresh(self) -> None:
        """Notice the shards that came or went since the last look, whoever did it."""
        names = {file.name for file in self.folder.glob("*.safetensors")}
        self._forget(self._shards.keys() - names)
        for name in sorted(names - self._shards.keys() - self._ignored):
            self._learn(name)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            shard = self._shards.pop(name)
            places = self._places[shard.fingerprint, shard.kind]
            for key in shard.rows:
                if places.get(key) == name:
                    del places[key]

    def _learn(self, name: str) -> None:
        path = self.folder / name
        try:
            with safe_open(path, framework="numpy") as file:
                about = file.metadata()
                keys, checksums = json.loads(about["keys"]), json.loads(about["checksums"])
                if not len(keys) == len(checksums) == file.get_slice("values").get_shape()[0]:
                    raise ValueError("keys and values differ in number")
            shard = _Shard(
                path=path,
                fingerprint=about["fingerprint"],
                kind=about["kind"],
                rows={key: row for row, key in enumerate(keys)},
                checksums=checksums,
                bytes=path.stat().st_size,
            )
        except OSError:
            self._ignored.add(name)  # deleted by another process since the listing, or not ours
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            self._drop(path, error)
        else:
            self._shards[name] = shard
            self._places[shard.fingerprint, shard.kind] |= dict.fromkeys(keys, name)

    def _read(self, name: str, keys: Iterable[str]) -> dict[str, Half]:
        shard = self._shards[name]
        found: dict[str, Half] = {}
        try:
            with safe_open(shard.path, framework="numpy") as file:
                values = file.get_slice("values")
                for key in keys:
                    row = shard.rows[key]
                    array = values[row : row + 1][0]
                    if zlib.crc32(array.tobytes()) != shard.checksums[row]:
                        raise ValueError("a checksum does not fit")
                    found[key] = array
        except OSError:
            self._forget([name])  # deleted by another process since the listing
            return {}
        except (SafetensorError, ValueError) as error:
            self._forget([name])
            self._drop(shard.path, error)
            return {}
        return found

    def _drop(self, path: Path, error: Exception) -> None:
        self._ignored.add(path.name)
        with suppress(OSError):
            path.unlink(missing_ok=True)
        warnings.warn(
            f"A damaged file of the cache was dropped: {path} ({error}). What it held is computed "
            "again.",
            stacklevel=2,
        )

    def _write(self, fingerprint: str, kind: str, arrays: Mapping[str, Half]) -> None:
        about = {
            "fingerprint": fingerprint,
            "kind": kind,
            "keys": json.dumps(list(arrays)),
            "checksums": json.dumps([zlib.crc32(array.tobytes()) for array in arrays.values()]),
        }
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}.safetensors"
        with new_file(self.folder / name) as temporary:
            try:
                save_file({"values": np.stack(list(arrays.values()))}, temporary, about)
            except SafetensorError as error:
                raise OSError(str(error)) from error
        self._learn(name)

    def _trim(self) -> None:
        """Delete the oldest shards, whose names sort first, until the rest fits."""
        self._refresh()
        total = sum(shard.bytes for shard in self._shards.values())
        for name in sorted(self._shards):
            if total <= self.limit_bytes:
                return
            shard = self._shards[name]
            self._forget([name])
            with suppress(OSError):
                shard.path.unlink(missing_ok=True)
            total -= shard.bytes


def default_folder() -> Path:
    """Where the cache of this user is: ``SURELABEL_CACHE``, or else a folder for caches."""
    if chosen := os.environ.get("SURELABEL_CACHE"):
        return Path(chosen).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "surelabel"


def content_hash(path: str | Path) -> str:
    """32 hexadecimal digits of BLAKE2b over what a file holds, whatever it is called.

    Raises:
        DataError: it cannot be read; the message is ``PATH: a few words why``.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: {(error.strerror or str(error)).lower()}") from error


def text_key(template: str, name: str) -> str:
    """The key of a label name in a template, as :func:`content_hash` is that of a picture."""
    return hashlib.blake2b(json.dumps([template, name]).encode(), digest_size=16).hexdigest()


def _half(key: str, array: npt.ArrayLike) -> Half:
    with np.errstate(over="ignore"):
        half = np.array(array, dtype=np.float16, order="C")
    if not np.isfinite(half).all():
        raise InputError(f"arrays of the cache must be finite in fp16. That of {key!r} is not.")
    return half
