"""List image paths in tar archives, Parquet tables and object stores."""

import os
from collections import Counter
from collections.abc import Iterable

from surelabel.data.image_extras import IMAGE_EXTRAS
from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.errors import DataError
from surelabel.storage.image_paths import (
    PARQUET_SUFFIX,
    is_container_path,
    is_object_url,
    is_parquet_path,
    split_container_path,
)
from surelabel.storage.object_stores import list_objects
from surelabel.storage.parquet_images import parquet_image_columns
from surelabel.storage.stored_images import (
    is_stored_image_missing,
    open_parquet_table,
    read_tar_contents,
)

ARCHIVE_LINK = "link in an archive"  # key of the number of members that are not stored as files
SIDECAR_SUFFIX = ".xmp"  # metadata of an image, which is not counted as an ignored file
COMPRESSED_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


def readable_image_suffixes() -> frozenset[str]:
    """Return the suffixes of the image formats whose decoder is installed."""
    missing = [extra.suffixes for extra in IMAGE_EXTRAS if not extra.is_installed]
    return IMAGE_SUFFIXES.difference(*missing)


def is_image_container_source(source: str) -> bool:
    """Return True if a source is an existing tar archive, Parquet table or column of a table.

    A compressed tar archive counts, although it cannot be read. URLs are not checked for existence.
    """
    has_suffix = is_container_path(source) or source.lower().endswith(COMPRESSED_SUFFIXES)
    is_file = has_suffix and (is_object_url(source) or os.path.isfile(source))
    return is_file or _column_of_table(source) is not None


def list_images_of_container(
    source: str, *, is_in_folder: bool = False
) -> tuple[list[str], Counter[str]]:
    """Return the image paths in a tar archive or a Parquet table, and count ignored members.

    The images of an archive are its members with an image suffix, in the order of the archive. The
    images of a table are the rows of its image column. If an archive contains images, members
    without an image suffix are not counted, because labels are expected beside images.

    Args:
        source: Path or URL of an archive or a table, or ``TABLE.parquet/COLUMN``.
        is_in_folder: Whether the source was found in a folder. If True, a table without an image
            column is ignored.

    Returns:
        The paths of the images, and the number of ignored members by suffix. The key
        ``ARCHIVE_LINK`` counts links and devices.

    Raises:
        DataError: If the file is damaged or compressed, if a table has several image columns or
            none, or if COLUMN is not an image column.
    """
    column_of_table = _column_of_table(source)
    if column_of_table is not None:
        return _list_rows(*column_of_table), Counter()
    if not is_parquet_path(source):
        return _list_members(source)
    columns = parquet_image_columns(open_parquet_table(source).schema_arrow)
    if is_in_folder and not columns:
        return [], Counter({PARQUET_SUFFIX: 1})
    if len(columns) != 1:
        choices = " or ".join(f"{source}/{column}" for column in columns)
        remedy = f"Give {choices}." if columns else "Give a table with a column of image bytes."
        raise DataError(
            f"{source} must contain one image column (bytes, or images of Hugging Face datasets); "
            f"got {len(columns)} image columns. {remedy}"
        )
    return _list_rows(source, columns[0]), Counter()


def list_images_of_objects(url: str) -> tuple[list[str], Counter[str]]:
    """Return the URLs of the images below a URL, and the number of ignored objects by suffix.

    Archives and tables among the objects are searched too. A single object that is no archive or
    table is returned as an image, whatever its suffix.

    Args:
        url: URL of an object, or of a prefix that is searched recursively.

    Raises:
        DataError: If the object store cannot be read, or the URL does not exist.
    """
    column_of_table = None if is_container_path(url) else _column_of_table(url)
    if column_of_table is not None:
        return _list_rows(*column_of_table), Counter()
    is_inside = split_container_path(url, is_file=is_container_path) is not None
    if is_inside and not is_container_path(url) and not is_stored_image_missing(url):
        return [url], Counter()
    urls = list(list_objects(url))
    if urls == [url] and not is_image_container_source(url):
        return urls, Counter()
    return collect_images(urls, is_in_folder=urls != [url])


def collect_images(
    paths: Iterable[str], *, is_in_folder: bool = True
) -> tuple[list[str], Counter[str]]:
    """Return the images among files, also in archives and tables, and count the ignored files.

    Sidecars (``.xmp``) are not counted.

    Args:
        paths: Paths or URLs of files.
        is_in_folder: Whether the files were found in a folder. If False, each file without an image
            suffix must be an archive or a table with one image column.

    Returns:
        The paths of the images, and the number of ignored files by suffix.

    Raises:
        DataError: If an archive or a table is damaged, or a table has several image columns.
    """
    suffixes = readable_image_suffixes()
    images: list[str] = []
    ignored: Counter[str] = Counter()
    for path in paths:
        suffix = os.path.splitext(path)[1].lower()
        if suffix in suffixes:
            images.append(path)
        elif is_container_path(path) or not is_in_folder:
            members, ignored_members = list_images_of_container(path, is_in_folder=is_in_folder)
            images += members
            ignored += ignored_members
        elif suffix != SIDECAR_SUFFIX:
            ignored[suffix] += 1
    return images, ignored


def _list_members(path: str) -> tuple[list[str], Counter[str]]:
    suffixes = readable_image_suffixes()
    contents = read_tar_contents(path)
    images: list[str] = []
    ignored: Counter[str] = Counter()
    for name in contents.names:
        suffix = os.path.splitext(name)[1].lower()
        if suffix in suffixes:
            images.append(f"{path}/{name}")
        else:
            ignored[suffix] += 1
    if images:  # labels and other files beside the images of a shard are expected
        ignored = Counter({s: n for s, n in ignored.items() if s in IMAGE_SUFFIXES})
    ignored[ARCHIVE_LINK] = contents.n_links
    return images, +ignored


def _column_of_table(source: str) -> tuple[str, str] | None:
    """Return the table and the column of ``TABLE.parquet/COLUMN``, or None for another source."""
    is_file = is_parquet_path if is_object_url(source) else os.path.isfile
    parts = split_container_path(source, is_file=is_file)
    if parts is None or not is_parquet_path(parts[0]):
        return None
    return parts if parts[1] and not parts[1].rpartition("/")[2].isdecimal() else None


def _list_rows(table: str, column: str) -> list[str]:
    file = open_parquet_table(table)
    columns = parquet_image_columns(file.schema_arrow)
    if column not in columns:
        quoted = ", ".join(map(repr, columns))
        remedy = f"Choose one of {quoted}." if columns else "Give a table with image bytes."
        raise DataError(f"{column!r} is not an image column of {table}. {remedy}")
    return [f"{table}/{column}/{row}" for row in range(file.metadata.num_rows)]
