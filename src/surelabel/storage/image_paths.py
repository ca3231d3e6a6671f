"""Parse and join image paths: local files, images in container files, and object store URLs."""

import os
import re
from collections.abc import Callable

OBJECT_SCHEMES = ("s3://", "gs://", "hdfs://")
TAR_SUFFIX = ".tar"
PARQUET_SUFFIX = ".parquet"

_CONTAINER = re.compile(r"\.(?:tar|parquet)(?=[/\\])", re.IGNORECASE)


def is_object_url(path: str) -> bool:
    """Return True if a path is the URL of an object store, such as ``s3://bucket/cat.jpg``."""
    return path.startswith(OBJECT_SCHEMES)


def absolute_image_path(path: str) -> str:
    """Return the absolute path of an image; the URL of an object store remains unchanged.

    Example:
        >>> absolute_image_path("s3://bucket/cat.jpg")
        's3://bucket/cat.jpg'
    """
    return path if is_object_url(path) else os.path.abspath(path)


def join_image_path(folder: str, path: str) -> str:
    """Join a relative image path to the path of a folder, an archive or an object store.

    An absolute path and a URL remain unchanged.

    Example:
        >>> join_image_path("s3://bucket/photos", "cat.jpg")
        's3://bucket/photos/cat.jpg'
    """
    if is_object_url(path):
        return path
    if is_object_url(folder) and not os.path.isabs(path):
        return f"{folder.rstrip('/')}/{path}"
    return os.path.join(folder, path)


def split_container_path(
    path: str, *, is_file: Callable[[str], bool] = os.path.isfile
) -> tuple[str, str] | None:
    """Return the container file of an image and the rest of the path, or None without a container.

    A container is a tar archive or a Parquet table. A folder whose name ends in ``.tar`` or
    ``.parquet`` is not a container. The rest of the path is separated by ``/``.

    Args:
        path: Path of an image.
        is_file: Function that returns whether there is a regular file at a path.
    """
    for suffix in _CONTAINER.finditer(path):
        if is_file(path[: suffix.end()]):
            return path[: suffix.end()], path[suffix.end() + 1 :].replace(os.sep, "/")
    return None


def is_tar_path(path: str) -> bool:
    """Return True if a path has the suffix of a tar archive."""
    return path.lower().endswith(TAR_SUFFIX)


def is_parquet_path(path: str) -> bool:
    """Return True if a path has the suffix of a Parquet table."""
    return path.lower().endswith(PARQUET_SUFFIX)


def is_container_path(path: str) -> bool:
    """Return True if a path has the suffix of a tar archive or a Parquet table."""
    return is_tar_path(path) or is_parquet_path(path)
