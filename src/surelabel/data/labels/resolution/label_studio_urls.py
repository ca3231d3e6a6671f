"""Convert image paths to the URLs of a Label Studio server that serves local files, and back."""

import os
import re
from pathlib import PurePath
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.data.labels.resolution.image_resolution import quote_first_unresolved
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.storage.image_paths import absolute_image_path, is_object_url

LOCAL_FILES = "/data/local-files/?d="  # of a server that serves local files
UPLOADS = "/data/upload/"  # of images that were uploaded to the server

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?=//)|data:")
_FILE_URL = re.compile(r"file://(?:localhost)?(?=/)")


def data_of_image(path: str) -> dict[str, Any]:
    """Return ``data`` of a task: the URL ``image`` and the absolute ``path`` of an image.

    The URL is that of a server with the document root ``/``. The URL of an object store remains
    unchanged.

    Example:
        >>> data_of_image("/images/a dog.jpg")["image"]
        '/data/local-files/?d=images/a%20dog.jpg'
    """
    absolute = absolute_image_path(path)
    url = absolute if is_object_url(absolute) else LOCAL_FILES + quote(absolute.lstrip("/"))
    return {"image": url, "path": absolute}


def image_of_data(place: str, data: dict[str, Any], *, is_root_known: bool) -> str:
    """Return the path of the image of a task.

    Args:
        place: Place of the task in messages, such as ``export.json, task 3``.
        data: Object ``data`` of the task. Its image is ``image``, or the only text that is the path
            of an image.
        is_root_known: Whether the user gave the folder of the images. If False, the absolute path
            that :func:`data_of_image` writes is used.

    Returns:
        Absolute path, URL of an object store, or path relative to the folder of the images. That
        folder is the document root of the server for ``/data/local-files/``, and the media folder
        of the server for ``/data/upload/``.

    Raises:
        DataError: If there is no image or no unique image, if the image has a URL of another kind,
            or if its path leaves the folder of the images.
    """
    value = data.get("image")
    if not isinstance(value, str):
        values = {key: text for key, text in data.items() if _is_image_text(text)}
        if len(values) != 1:
            raise DataError(
                f"{place}: data must contain the path of one image, with the key image; got "
                f"{quote_first_unresolved(list(values)) or 'no path'}. Rename the key of the path "
                "to image."
            )
        value = next(iter(values.values()))
    path, allows_absolute = value, True
    if is_object_url(value):
        return value
    if _FILE_URL.match(value):
        path = unquote(_FILE_URL.sub("", value))
    elif scheme := _SCHEME.match(value):
        raise DataError(
            f"{place}: an image must be a local file; got {quote_of_file(value)}. Images of "
            f"{scheme[0].rstrip(':')} URLs are not downloaded: download the images, and replace "
            "the URLs by paths."
        )
    elif value.startswith(LOCAL_FILES.partition("?")[0]):
        path, allows_absolute = parse_qs(value.partition("?")[2]).get("d", [""])[0], False
        stored = data.get("path")
        if not is_root_known and isinstance(stored, str) and stored.lstrip("/") == path:
            path, allows_absolute = stored, os.path.isabs(stored)
    elif value.startswith(UPLOADS):
        path, allows_absolute = value.removeprefix("/data/"), False
    check_relative_image_path(place, path, allows_absolute=allows_absolute)
    return path


def _is_image_text(value: object) -> bool:
    return isinstance(value, str) and PurePath(value).suffix.lower() in IMAGE_SUFFIXES
