"""Find image paths in folders, archives, tables, object stores, lists and standard input."""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from surelabel.counts import format_count
from surelabel.data.container_images import (
    ARCHIVE_LINK,
    collect_images,
    is_image_container_source,
    list_images_of_container,
    list_images_of_objects,
)
from surelabel.data.image_extras import IMAGE_EXTRAS, RAW
from surelabel.data.images import COMMON_SUFFIXES
from surelabel.data.text_lists import read_text_list, read_text_list_from_stdin
from surelabel.errors import DataError
from surelabel.file_readers import contains_url
from surelabel.storage.image_paths import (
    absolute_image_path,
    is_object_url,
)
from surelabel.storage.stored_images import is_stored_image_missing

FOLDER_LINK = "symbolic link"  # key of the number of links to folders that are not followed
MAX_NAMED_SUFFIXES = 4  # in a message


def find_images(sources: Sequence[str | Path]) -> list[str]:
    """Return the image paths in folders, files and lists, without duplicates.

    - A folder is searched recursively for files with an image suffix, in sorted order. Hidden
      files and folders are skipped. A warning names each subfolder that cannot be read.
    - HEIC and RAW images in folders and archives are found if the package that decodes them is
      installed.
    - A warning states the number of ignored files in folders, by suffix, and the missing extra.
      Sidecars (``.xmp``) are not counted. Symbolic links to folders are counted too, and are not
      followed.
    - A RAW image and another image of the same folder can have the same name without suffix. Both
      are returned, with a warning.
    - A tar archive is searched like a folder: ``shard.tar/0001.jpg`` is the path of a member. In a
      Parquet table with one column of image bytes, ``table.parquet/image/17`` is the path of row
      17, counted from 0. Give ``table.parquet/COLUMN`` if there are several columns of image bytes.
      Archives and tables in folders are searched too.
    - A URL of an object store, ``s3://bucket/folder/``, is searched like a folder. URLs of other
      schemes than ``s3``, ``gs`` and ``hdfs`` are refused.
    - A ``.txt`` file is a list with one path per line. A path is relative to the folder of the
      list if a file exists there, and otherwise to the working directory.
    - The source ``-`` is a list of paths on standard input.
    - Any other file is treated as an image, regardless of its suffix.

    Images are not opened, so damaged files and special files, such as named pipes, are included.

    Args:
        sources: Paths of folders, image files, archives, tables and lists, URLs of object stores,
            or ``-`` for standard input.

    Returns:
        The image paths, in the order of the sources. A path is absolute if the source or the line
        in the list is absolute.

    Raises:
        DataError: If a source is empty or does not exist, if a list, an archive, a table or an
            object store cannot be read, or if there are no images.
    """
    paths: dict[str, str] = {}
    ignored_files: Counter[str] = Counter()
    counts = []
    for source in map(str, sources):
        images, ignored_in_source = _list_images_of_source(source)
        n_files = len(images) + ignored_in_source.total() - ignored_in_source[FOLDER_LINK]
        files = format_count(n_files, "file")
        counts.append(f"{format_count(len(images), 'image')} among {files} in {source}")
        ignored_files += ignored_in_source
        for image in images:
            absolute = absolute_image_path(image)
            paths.setdefault(image if absolute == image else absolute, image)  # one text, not two
    description = describe_ignored_files(ignored_files)
    if not paths:
        summary = "; ".join(counts) if counts else "no source"
        suffixes = " ".join(sorted(COMMON_SUFFIXES))
        raise DataError(
            f"Expected images ({suffixes}, HEIC, RAW); got {summary}. "
            f"{description}{' ' if description else ''}"
            "Give a folder of images, image files, tar archives, or a .txt list of images."
        )
    if description:
        warnings.warn(description, stacklevel=2)
    if message := _describe_raw_duplicates(list(paths.values())):
        warnings.warn(message, stacklevel=2)
    return list(paths.values())


def _list_images_of_source(source: str) -> tuple[list[str], Counter[str]]:
    """Return the paths of the images in a source, and the number of ignored files by suffix."""
    if not source.strip():
        raise DataError("An image path must not be empty. Give a folder or an image file.")
    if source == "-":
        return _expand_image_list(_parse_image_list(read_text_list_from_stdin(), Path()))
    if os.path.isdir(source):
        return _list_images_of_folder(source)
    if is_object_url(source):
        return list_images_of_objects(source)
    if contains_url(source):
        raise DataError(
            f"{source}: URLs are not downloaded. Download the images, and give their folder."
        )
    if is_image_container_source(source):
        return list_images_of_container(source)
    if is_stored_image_missing(source):
        raise DataError(f"{source} does not exist. Check the path.")
    if source.lower().endswith(".txt"):
        return _expand_image_list(_parse_image_list(read_text_list(source), Path(source).parent))
    return [source], Counter()


def _list_images_of_folder(folder: str) -> tuple[list[str], Counter[str]]:
    """Return the paths of the images in a folder, and the number of ignored files by suffix."""
    links: Counter[str] = Counter()
    images, ignored_files = collect_images(_walk_files(folder, links))
    return images, ignored_files + links


def _walk_files(folder: str, links: Counter[str]) -> Iterator[str]:
    """Yield the paths of the files in a folder in sorted order, and count links to folders."""
    for parent, folders, files in os.walk(folder, onerror=_warn_unreadable_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links[FOLDER_LINK] += sum(os.path.islink(os.path.join(parent, f)) for f in folders)
        for file in sorted(name for name in files if not name.startswith(".")):
            yield os.path.join(parent, file)


def describe_ignored_files(counts: Mapping[str, int]) -> str:
    """Describe the files of folders that are not read as images, in sentences on one line.

    Args:
        counts: Number of files by suffix, in lower case with a dot. The key ``FOLDER_LINK`` counts
            symbolic links to folders, and ``ARCHIVE_LINK`` links and devices in archives.

    Returns:
        The description, or an empty text if there are no such files.

    Example:
        >>> describe_ignored_files({".mp4": 1, ".xmp": 2, "": 1})
        '4 files without an image suffix are ignored: 2 .xmp, 1 without suffix, 1 .mp4.'
    """
    others = Counter(counts)
    n_links, n_archive_links = others.pop(FOLDER_LINK, 0), others.pop(ARCHIVE_LINK, 0)
    sentences = []
    for extra in IMAGE_EXTRAS:
        n_images = sum(others.pop(suffix, 0) for suffix in extra.suffixes)
        if n_images:
            images = "image is" if n_images == 1 else "images are"
            sentences.append(
                f"{n_images} {extra.kind} {images} ignored; to read {extra.kind}, {extra.remedy}."
            )
    if others:
        ranked = sorted(others.items(), key=lambda item: (-item[1], item[0]))
        parts = [f"{n} {suffix or 'without suffix'}" for suffix, n in ranked[:MAX_NAMED_SUFFIXES]]
        n_rest = sum(n for _, n in ranked[MAX_NAMED_SUFFIXES:])
        parts += [f"{n_rest} with other suffixes"] if n_rest else []
        files, are = ("file", "is") if others.total() == 1 else ("files", "are")
        sentences.append(
            f"{others.total()} {files} without an image suffix {are} ignored: {', '.join(parts)}."
        )
    if n_links:
        links = "link to a folder is" if n_links == 1 else "links to folders are"
        sentences.append(f"{n_links} symbolic {links} not followed.")
    if n_archive_links:
        members = "member is" if n_archive_links == 1 else "members are"
        sentences.append(
            f"{n_archive_links} archive {members} ignored: links, devices or sparse files."
        )
    return " ".join(sentences)


def _describe_raw_duplicates(paths: Sequence[str]) -> str:
    """Describe the RAW images with the name of another image, or return an empty text."""
    stems: dict[str, str] = {}
    raw_images = []
    for path in paths:
        stem, suffix = os.path.splitext(path)
        if suffix.lower() in RAW.suffixes:
            raw_images.append((stem, path))
        else:
            stems[stem] = path
    pairs = [(path, stems[stem]) for stem, path in raw_images if stem in stems]
    if not pairs:
        return ""
    images = "RAW image has" if len(pairs) == 1 else "RAW images have"
    return (
        f"{len(pairs)} {images} the same name as another image, such as {' and '.join(pairs[0])}. "
        "Both files are read as separate images. To read only one file of each pair, give a .txt "
        "list of images."
    )


def _warn_unreadable_folder(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a folder that was deleted has no images
        warnings.warn(
            f"{error.filename} cannot be read: {error.strerror}. The images in this folder are "
            "skipped. To read these images, correct the permissions of the folder.",
            stacklevel=1,  # os.walk is the caller
        )


def _parse_image_list(lines: Sequence[str], folder: Path) -> list[str]:
    """Return the paths of a list; a path is relative to ``folder`` if a file exists there."""
    candidates = (
        (line, line if is_object_url(line) else str(folder / line)) for line in lines if line
    )
    return [
        line if path != line and is_stored_image_missing(path) else path
        for line, path in candidates
    ]


def _expand_image_list(paths: Sequence[str]) -> tuple[list[str], Counter[str]]:
    """Return the images of a list, in which an archive or a table stands for its images."""
    images: list[str] = []
    ignored: Counter[str] = Counter()
    for path in paths:
        if is_image_container_source(path):
            members, ignored_members = list_images_of_container(path)
            images += members
            ignored += ignored_members
        else:
            images.append(path)
    return images, ignored
