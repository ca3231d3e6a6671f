"""Define the root folder of the images of an index, so that the images can be moved together.

Stored paths of images in the root are relative to the root.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from surelabel.errors import DataError
from surelabel.retrieval.shards import Shard
from surelabel.storage.image_paths import is_object_url

_UNSAFE_PARTS = frozenset(("", ".", ".."))
_WINDOWS_CHARACTERS = frozenset("\\:")  # second separator, drive


@dataclass(frozen=True)
class IndexRoot:
    """Root folder of the stored image paths of an index.

    The path of an image in the root is stored relative to the root, with ``/`` between folders. The
    path of any other image is stored as an absolute path.

    Attributes:
        stored: Absolute path of the root when the index was written.
        current: Current absolute path of the root, which replaces ``stored`` in image paths.
    """

    stored: str
    current: str

    @classmethod
    def at(cls, folder: str) -> "IndexRoot":
        """Return a root that was not moved, from its absolute path."""
        return cls(folder, folder)

    def stored_path(self, path: str) -> str:
        """Return the stored form of an absolute path, for the root ``current``."""
        relative_path = _path_relative_to_index_root(path, self.current)
        return path if relative_path is None else relative_path.replace(os.sep, "/")

    def resolve(self, path: str) -> str:
        """Return the absolute path of an image.

        Args:
            path: Stored path. In an index of version 1, the path of a file in ``stored`` is
                absolute.

        Raises:
            DataError: If the path is relative and can leave the root, because a part is empty,
                ``.`` or ``..``, or the path has a drive of Windows.
        """
        if _is_absolute_path_in_index(path):
            if self.stored == self.current:
                return path
            relative_path = _path_relative_to_index_root(path, self.stored)
            return path if relative_path is None else self._prefix + relative_path
        has_drive = os.sep != "/" and not _WINDOWS_CHARACTERS.isdisjoint(path)
        if has_drive or not _UNSAFE_PARTS.isdisjoint(path.split("/")):
            raise DataError(
                f"Stored image paths must be absolute or inside the root of the index; got "
                f"{path!r}. The index is damaged or unsafe; build the index again "
                f"(`surelabel index`)."
            )
        return self._prefix + path.replace("/", os.sep)

    @cached_property
    def _prefix(self) -> str:
        return self.current.rstrip(os.sep) + os.sep

    def stored_forms(self, path: str) -> list[str]:
        """Return all stored paths that `resolve` maps to the given absolute path."""
        relative_path = _path_relative_to_index_root(path, self.current)
        forms = [] if relative_path is None else [self.stored_path(path)]
        if self.stored == self.current or _path_relative_to_index_root(path, self.stored) is None:
            forms.append(path)
        if relative_path is not None and self.stored != self.current:
            forms.append(os.path.join(self.stored, relative_path))
        return forms


def common_index_root(paths: Iterable[str], default: str) -> str:
    """Return the deepest folder that contains all images.

    Args:
        paths: Absolute paths of the images. URLs of object stores are not considered.
        default: Absolute path that is returned if there is no image file, or if the images have no
            common folder, for example on two drives of Windows.
    """
    try:
        return os.path.commonpath({os.path.dirname(p) for p in paths if not is_object_url(p)})
    except ValueError:
        return default


def default_index_root(folder: str | Path) -> str:
    """Return the absolute path of the parent folder of an index.

    It is the root if the images have no common folder.
    """
    return os.path.dirname(os.path.abspath(folder))


def root_of_index_version_1(folder: str | Path, shards: Iterable[Shard]) -> str:
    """Return the deepest folder that contains all images of an index of version 1.

    If there is no such folder, return the parent folder of the index.

    Args:
        folder: Folder of the index.
        shards: Shards of the index, whose stored paths are absolute.
    """
    paths = [path for shard in shards for path in shard.active_column("path").to_pylist()]
    return common_index_root(paths, default_index_root(folder))


def _is_absolute_path_in_index(path: str) -> bool:
    is_absolute = path.startswith("/") if os.sep == "/" else os.path.isabs(path)  # 4 times as fast
    return is_absolute or (":" in path and is_object_url(path))


def _path_relative_to_index_root(path: str, root: str) -> str | None:
    """Return a path relative to the root, or None if the path is not in the root."""
    prefix = root if root.endswith(os.sep) else root + os.sep
    return path[len(prefix) :] if path.startswith(prefix) and path != prefix else None
