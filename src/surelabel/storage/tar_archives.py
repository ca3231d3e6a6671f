"""Read members of tar archives, such as the shards of WebDataset, without extracting them.

The headers of an archive are read once in a process. The index of an archive has 24 bytes per
member, and the newest indices are cached. Forked processes inherit the cached indices.
"""

import hashlib
import io
import os
import posixpath
import tarfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.errors import DataError

MAX_INDEXED_MEMBERS = 2**22  # members in all cached indices together: 100 MB
BUFFER_BYTES = 2**20  # an image up to this size is read by one system call
COPY_ARCHIVE = "Copy the archive again, or remove it."

_DECOMPRESSORS = {  # command by the first bytes of a compressed file
    b"\x1f\x8b": "gunzip",
    b"BZh": "bunzip2",
    b"\xfd7zXZ\x00": "unxz",
    b"\x28\xb5\x2f\xfd": "unzstd",
}


class TarMember(NamedTuple):
    """A regular file in a tar archive.

    Attributes:
        name: Path in the archive, without ``./`` at the start.
        offset: Position of the content in the archive, in bytes.
        size: Size of the content in bytes.
    """

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class TarIndex:
    """Positions of the members of an archive.

    Attributes:
        hashes: Sorted 64-bit hashes of the names, length n.
        offsets: Positions of the contents in bytes, length n.
        sizes: Sizes of the contents in bytes, length n.
    """

    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def find(self, name: str) -> TarMember | None:
        """Return the last member with a name, or None if no member has this name."""
        key = np.uint64(_hash_of_name(name))
        row = int(np.searchsorted(self.hashes, key, side="right")) - 1
        if row < 0 or self.hashes[row] != key:
            return None
        return TarMember(name, int(self.offsets[row]), int(self.sizes[row]))


@dataclass(frozen=True)
class TarContents:
    """Names and positions of the members of an archive.

    Attributes:
        names: Distinct names of the members that are regular files, in the order of the archive.
        n_links: Number of links, devices and sparse members.
        index: Positions of the members.
    """

    names: list[str]
    n_links: int
    index: TarIndex


_indices: dict[str, tuple[object, TarIndex]] = {}  # by path, with the state of the archive


def read_tar_members(path: str, stream: BinaryIO) -> Iterator[TarMember | None]:
    """Yield the members of an archive that are regular files, and None for each link or device.

    Hidden members, whose name or folder starts with a dot, and folders are skipped. A sparse member
    is treated as a link, because its content is not stored in one piece.

    Args:
        path: Path of the archive, for messages.
        stream: Seekable stream of the archive.

    Raises:
        DataError: If the archive is compressed, truncated or damaged, or if the name of a member is
            absolute or contains ``..``.
    """
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    start = stream.read(6)
    stream.seek(0)
    if start.startswith(tuple(_DECOMPRESSORS)):
        command = next(name for first, name in _DECOMPRESSORS.items() if start.startswith(first))
        raise DataError(
            f"{path} is a compressed archive, whose members cannot be read one by one. "
            f"Decompress the archive first ({command} {os.path.basename(path)})."
        )
    for entry in _read_headers(path, stream, size):
        if entry.size < 0 or entry.offset_data + (entry.size if entry.isfile() else 0) > size:
            raise DataError(f"{path} is truncated at member {entry.name!r}. {COPY_ARCHIVE}")
        parts = entry.name.split("/")
        if entry.name.startswith("/") or ".." in parts:
            raise DataError(
                f"{path}: names of members must be relative and must not contain '..'; got "
                f"{entry.name!r}. Write the archive again with other names."
            )
        if entry.isdir() or any(p.startswith(".") and p != "." for p in parts):
            continue
        is_stored = entry.isfile() and not entry.issparse()
        name = posixpath.normpath(entry.name)
        yield TarMember(name, entry.offset_data, entry.size) if is_stored else None


def _read_headers(path: str, stream: BinaryIO, size: int) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of all members, without storing them.

    ``tarfile`` stops without an error at a damaged header after the first header. Therefore, the
    block at which ``tarfile`` stops is examined.

    Raises:
        DataError: If the file is not a tar archive, or is truncated or damaged.
    """
    n_members = 0
    try:
        archive = tarfile.TarFile(fileobj=stream, errorlevel=0)
        while (entry := archive.next()) is not None:  # first the header that TarFile has read
            n_members += 1
            archive.members.clear()  # type: ignore[attr-defined]
            yield entry
        stream.seek(archive.offset)
        is_damaged = stream.read(tarfile.BLOCKSIZE).strip(b"\0") != b""
    except (tarfile.TarError, EOFError, ValueError, OverflowError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        if not n_members:
            raise DataError(
                f"{path} must be a tar archive; got another file format. {COPY_ARCHIVE}"
            ) from (error)
        is_damaged = True
    if is_damaged:
        kind = "truncated" if archive.offset + tarfile.BLOCKSIZE > size else "damaged"
        raise DataError(
            f"{path} is {kind} after {format_count(n_members, 'member')}. {COPY_ARCHIVE}"
        )


def cached_tar_index(path: str, state: object) -> TarIndex | None:
    """Return the cached index of an archive, or None if the archive has another state.

    Args:
        path: Path of the archive.
        state: Size, modification time and inode of the archive, or None for an object.
    """
    cached = _indices.get(path)
    return cached[1] if cached is not None and cached[0] == state else None


def cache_tar_contents(path: str, stream: BinaryIO, state: object) -> TarContents:
    """Return the contents of an archive, and store its index in the cache of this process.

    Args:
        path: Path of the archive.
        stream: Seekable stream of the archive.
        state: Size, modification time and inode of the archive, or None for an object.

    Raises:
        DataError: If the archive cannot be read; see :func:`read_tar_members`.
    """
    names, n_links = [], 0
    hashes, offsets, sizes = array("Q"), array("q"), array("q")
    for member in read_tar_members(path, stream):
        if member is None:
            n_links += 1
            continue
        names.append(member.name)
        hashes.append(_hash_of_name(member.name))
        offsets.append(member.offset)
        sizes.append(member.size)
    order = np.argsort(np.array(hashes), kind="stable")  # equal names remain in order
    columns = [np.array(column)[order] for column in (hashes, offsets, sizes)]
    index = TarIndex(*columns)
    if (index.hashes[1:] == index.hashes[:-1]).any():
        names = list(dict.fromkeys(names))
    _indices.pop(path, None)
    _indices[path] = (state, index)
    n_members = sum(len(cached.hashes) for _, cached in _indices.values())
    while n_members > MAX_INDEXED_MEMBERS and len(_indices) > 1:
        oldest = next(iter(_indices))
        n_members -= len(_indices.pop(oldest)[1].hashes)
    return TarContents(names, n_links, index)


def open_tar_member(descriptor: int, member: TarMember) -> BinaryIO:
    """Return a stream of the content of a member, independent of the position of the descriptor.

    Args:
        descriptor: Descriptor of the archive, which must remain open.
        member: Member of the archive.
    """
    section = _FileSection(descriptor, member)
    return io.BufferedReader(section, max(1, min(member.size, BUFFER_BYTES)))


class _FileSection(io.RawIOBase):
    """Stream of the bytes of a member at their position in the archive."""

    def __init__(self, descriptor: int, member: TarMember):
        self._descriptor, self._member, self._position = descriptor, member, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._member.size}
        if start[whence] + offset < 0:
            raise OSError("a position in a file must not be negative")
        self._position = start[whence] + offset
        return self._position

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        n_bytes = max(0, min(len(buffer), self._member.size - self._position))
        start = self._member.offset + self._position
        content = os.pread(self._descriptor, n_bytes, start)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


def _hash_of_name(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
