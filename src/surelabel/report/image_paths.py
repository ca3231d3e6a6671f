"""Shorten the image paths of a section to paths relative to a common folder."""

import os
from collections.abc import Iterable

from surelabel.markup import Markup, markup_element
from surelabel.storage.image_paths import is_object_url


def common_image_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that contains all images, or an empty text if there is none.

    If an image is in an object store, the text is empty.

    Args:
        paths: Paths of images.

    Example:
        >>> common_image_folder(["photos/a/1.jpg", "photos/b/2.jpg"])
        'photos'
    """
    folders = {os.path.dirname(path) for path in paths}
    if any(map(is_object_url, folders)):
        return ""
    try:
        return os.path.commonpath(folders) if folders else ""
    except ValueError:  # folders on several drives, or absolute and relative paths
        return ""


def render_image_folder(folder: str) -> Markup:
    """Return a paragraph with the folder of the images of a section, or an empty text."""
    if not folder:
        return Markup("")
    code = markup_element("code", folder)
    return markup_element("p", "The image paths are relative to ", code, ".", class_="soft")


def render_image_path(path: str, folder: str) -> Markup:
    """Return the path of an image, relative to a folder.

    Args:
        path: Path of the image.
        folder: Folder of all images of the section. If empty, the path is not shortened.
    """
    shown_path = os.path.relpath(path, folder) if folder else path
    return markup_element("div", markup_element("bdi", shown_path), class_="path")
