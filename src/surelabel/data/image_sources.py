"""Image paths from folders, files, lists and standard input."""

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.data.text_lists import read_text_list, read_text_list_from_stdin
from surelabel.errors import DataError


def find_images(sources: Sequence[str | Path]) -> list[str]:
    """Return the image paths in folders, files and lists, without duplicates.

    - A folder is searched recursively for files with an image suffix, in sorted order. Hidden
      files and folders are skipped. If a folder inside it cannot be read, a warning names it.
    - A ``.txt`` file is a list with one path per line. A path is relative to the folder of the
      list if a file exists there, and otherwise to the working directory.
    - The source ``-`` is a list of paths on standard input.
    - Any other file is treated as an image, regardless of its suffix.

    Images are not opened, so damaged files and special files, such as named pipes, are included.

    Args:
        sources: Paths of folders, image files and lists, or ``-`` for standard input.

    Returns:
        The image paths; a path is absolute if the source or the line in the list is absolute.

    Raises:
        DataError: If a source does not exist, if a list cannot be read, or if there are no images.
    """
    paths: dict[str, str] = {}
    counts = []
    for source in map(str, sources):
        n_files, images = _list_images_of_source(source)
        counts.append(f"{len(images)} images among {n_files} files in {source}")
        for image in images:
            paths.setdefault(os.path.abspath(image), image)
    if not paths:
        summary = "; ".join(counts) if counts else "no source"
        raise DataError(
            f"Expected images ({' '.join(sorted(IMAGE_SUFFIXES))}); got {summary}. "
            "Give a folder of images, image files, or a .txt list of images."
        )
    return list(paths.values())


def _list_images_of_source(source: str) -> tuple[int, list[str]]:
    """Return the number of files in a source and the paths of the images in the source."""
    if source == "-":
        paths = _parse_image_list(read_text_list_from_stdin(), Path())
    elif os.path.isdir(source):
        files = list(_walk_image_source_files(source))
        images = [f for f in files if os.path.splitext(f)[1].lower() in IMAGE_SUFFIXES]
        return len(files), images
    elif is_missing_image(source):
        raise DataError(f"{source}: no such file or folder. Check the path.")
    elif source.lower().endswith(".txt"):
        paths = _parse_image_list(read_text_list(source), Path(source).parent)
    else:
        paths = [source]
    return len(paths), paths


def _walk_image_source_files(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder, onerror=_warn_unreadable_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(parent, f) for f in sorted(files) if not f.startswith("."))


def _warn_unreadable_folder(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a folder that was deleted has no images
        warnings.warn(
            f"{error.filename} cannot be read: {error.strerror}. The images in this folder are "
            "skipped. Correct the permissions of the folder to include them.",
            stacklevel=1,  # os.walk is the caller
        )


def _parse_image_list(lines: Sequence[str], folder: Path) -> list[str]:
    """Return the paths of a list; a path is relative to ``folder`` if a file exists there."""
    candidates = ((line, str(folder / line)) for line in lines if line)
    return [line if is_missing_image(path) else path for line, path in candidates]


def is_missing_image(path: str) -> bool:
    """Return True if there is no file at a path, and False if the file cannot be examined.

    Such a file, for example a symbolic link to itself, is skipped with its reason when it is read.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False
