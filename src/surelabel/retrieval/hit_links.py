"""Create links to the images of a search result, for programs that show a folder of images."""

import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.errors import DataError
from surelabel.retrieval.hits import Hit
from surelabel.storage.image_paths import is_object_url


def link_hits(hits: Sequence[Hit], folder: str | Path) -> list[str]:
    """Write a folder of symbolic links to the images of a search result.

    The name of a link consists of the rank, the probability and the file name of an image, such as
    ``0001-0.973-beach.jpg``, so sorted names have the order of the result. A name of more than 255
    bytes is shortened.

    Args:
        hits: Images of a search result.
        folder: Folder of the links, which must not exist or must be empty.

    Returns:
        Paths of the images without a link, because they are not files: members of tar files, rows
        of tables, objects of an object store, or images that were deleted.

    Raises:
        DataError: If the folder is not empty, is a file or cannot be written, or if the file system
            has no symbolic links.
    """
    target = Path(folder)
    without_file, n_digits = list[str](), max(4, len(str(len(hits))))
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise DataError(
                f"The folder of links must be new or empty; {folder} is not empty. Choose "
                "another folder."
            )
        for rank, hit in enumerate(hits, start=1):
            if is_object_url(hit.path) or not os.path.isfile(hit.path):
                without_file.append(hit.path)
                continue
            prefix = f"{rank:0{n_digits}}-{hit.probability:.3f}-"
            name = _shortened_link_name(prefix, os.path.basename(hit.path))
            os.symlink(hit.path, target / name)
    except OSError as error:
        raise DataError(
            f"Links cannot be written to {folder}: {error.strerror}. Choose a writable folder on a "
            "file system that supports symbolic links."
        ) from error
    return without_file


def _shortened_link_name(prefix: str, name: str) -> str:
    """Return a prefix and a file name, at most 255 bytes; a suffix of at most 20 bytes is kept."""
    stem, suffix = os.path.splitext(name)
    if len(os.fsencode(suffix)) > 20:
        stem, suffix = name, ""
    while len(os.fsencode(prefix + stem + suffix)) > 255:
        stem = stem[:-1]
    return prefix + stem + suffix
