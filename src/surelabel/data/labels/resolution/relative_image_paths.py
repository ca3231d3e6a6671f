"""Check image paths of annotation files, which can be untrusted."""

import ntpath
import posixpath

from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.files import escape_non_utf8_file_path
from surelabel.storage.image_paths import is_object_url


def check_relative_image_path(place: str, path: str, *, allows_absolute: bool = False) -> None:
    """Check that an image path of an annotation file stays inside the folder of the images.

    Args:
        place: Place of the path in messages, such as ``labels.csv, line 3``.
        path: Path of an image, with ``/`` or ``\\`` between folders.
        allows_absolute: Whether the annotation format allows absolute paths.

    Raises:
        DataError: If the path is empty, contains a NUL byte or is not valid UTF-8, if it leaves the
            folder by ``..``, or if it is absolute and ``allows_absolute`` is False.
    """
    normalized = posixpath.normpath(path.replace("\\", "/"))
    has_root = posixpath.isabs(normalized) or bool(ntpath.splitdrive(normalized)[0])
    is_absolute = has_root or is_object_url(path)
    leaves_folder = normalized == ".." or normalized.startswith("../")
    is_text = path and "\0" not in path and escape_non_utf8_file_path(path) == path
    if not is_text or leaves_folder or (is_absolute and not allows_absolute):
        expected = "a path" if allows_absolute else "a relative path"
        raise DataError(
            f"{place}: an image must have {expected} inside the folder of the images; got "
            f"{quote_of_file(path)}. Correct the path."
        )
