"""Scan a folder repeatedly for image files, with the size and modification time of each file."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from surelabel.data.container_images import readable_image_suffixes
from surelabel.storage.stored_images import StoredImageStatus

TEMPORARY_SUFFIXES = (  # of the stem of a file that a copy program has not finished
    *(".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".download"),
)


@dataclass(frozen=True)
class ScannedFolder:
    """Image files of one folder, without its subfolders.

    Attributes:
        path: Path of the folder.
        images: Size and modification time of each image file, by file name.
        errors: Reason for each folder or file that could not be examined, by path. The images of
            such a folder are unknown.
    """

    path: str
    images: dict[str, StoredImageStatus]
    errors: dict[str, str]


def is_complete_image_name(name: str, suffixes: frozenset[str]) -> bool:
    """Return whether a file name is that of an image, and not that of an unfinished copy.

    Hidden files, files that begin with ``~`` and files such as ``IMG.part.jpg`` are unfinished.

    Args:
        name: Name of a file.
        suffixes: Suffixes of image files, in lower case with a dot.

    Example:
        >>> names = ["a.JPG", ".a.jpg.x7Qz", "a.jpg.part", "a.part.jpg", "~a.jpg", "a.jpg~"]
        >>> [is_complete_image_name(name, frozenset({".jpg"})) for name in names]
        [True, False, False, False, False, False]
    """
    stem, suffix = os.path.splitext(name.lower())
    if suffix not in suffixes or name.startswith((".", "~")):
        return False
    return not stem.endswith(TEMPORARY_SUFFIXES)


def scan_image_folder(folder: str, *, excluded: str | None = None) -> Iterator[ScannedFolder]:
    """Yield each folder below a folder, including the folder itself, with its image files.

    Hidden folders are skipped, and symbolic links to folders are not followed. Archives and tables
    are not opened. Only one folder at a time is in memory.

    Args:
        folder: Absolute path of the folder.
        excluded: Absolute path of a folder that is skipped, or None.
    """
    suffixes = readable_image_suffixes()
    folders = [folder]
    while folders:
        scanned, subfolders = _scan_one_folder(folders.pop(), suffixes)
        folders += [path for path in sorted(subfolders, reverse=True) if path != excluded]
        yield scanned


def _scan_one_folder(folder: str, suffixes: frozenset[str]) -> tuple[ScannedFolder, list[str]]:
    """Return the image files of a folder, and the paths of its subfolders."""
    images: dict[str, StoredImageStatus] = {}
    errors: dict[str, str] = {}
    subfolders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith("."):
                            subfolders.append(entry.path)
                    elif is_complete_image_name(entry.name, suffixes):
                        status = entry.stat()
                        if stat.S_ISREG(status.st_mode):
                            images[entry.name] = StoredImageStatus(
                                status.st_size, status.st_mtime_ns
                            )
                except FileNotFoundError:
                    continue  # the file was deleted meanwhile, or is a link without a target
                except OSError as error:
                    errors[entry.path] = error.strerror or type(error).__name__
    except OSError as error:
        errors[folder] = error.strerror or type(error).__name__
    return ScannedFolder(folder, images, errors), subfolders
