"""Read width, height and date of an image from the header of its file, without decoding pixels."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import BinaryIO, NamedTuple

from PIL import ExifTags, Image
from PIL.ImageFile import ImageFile

from surelabel.data.heif_images import is_heif_image, open_heif_image
from surelabel.data.images import (
    IMAGE_DECODING_ERRORS,
    IMAGE_FORMATS,
    without_pixel_limit_of_pillow,
)
from surelabel.data.raw_images import is_raw_image
from surelabel.errors import DataError

_SIDEWAYS_ORIENTATIONS = {5, 6, 7, 8}  # of EXIF: width and height are exchanged
_MAX_SIDE = 2**31 - 1
_DATE_FORMAT = "%Y:%m:%d %H:%M:%S"


class ImageHeader(NamedTuple):
    """Width, height and date of an image.

    Attributes:
        width: Width of the upright image in pixels, or None if it is unknown.
        height: Height of the upright image in pixels, or None if it is unknown.
        date: Local time at which a photograph was taken, or None if it is unknown.
    """

    width: int | None = None
    height: int | None = None
    date: datetime | None = None


@contextmanager
def image_header_reading() -> Iterator[None]:
    """Allow images of any size, and ignore warnings about damaged headers, in all threads.

    The settings apply to the whole process, so threads that read headers share one context.
    """
    with without_pixel_limit_of_pillow(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_image_header(stream: BinaryIO) -> ImageHeader:
    """Return width, height and date of an image; a field that cannot be read is None.

    For a RAW image, all are None, because its header describes previews.

    Args:
        stream: File of the image at any position. Call the function inside
            :func:`image_header_reading`.
    """
    Image.init()  # load all plug-ins; Pillow loads only the common ones by default
    try:
        if is_raw_image(stream):
            return ImageHeader()
        is_heif = is_heif_image(stream)
        with open_heif_image(stream) if is_heif else _open_image(stream) as image:
            width, height = image.size
            if max(width, height) > _MAX_SIDE:
                return ImageHeader()
            orientation, date = _read_exif(image)
            is_sideways = orientation in _SIDEWAYS_ORIENTATIONS
            return ImageHeader(*((height, width) if is_sideways else (width, height)), date)
    except (DataError, *IMAGE_DECODING_ERRORS):
        return ImageHeader()


def _open_image(stream: BinaryIO) -> ImageFile:
    stream.seek(0)
    return Image.open(stream, formats=IMAGE_FORMATS)


def _read_exif(image: ImageFile) -> tuple[object, datetime | None]:
    """Return the orientation and the date of EXIF data, or None if they are damaged or missing."""
    if image.format == "PNG" and "exif" not in image.info:
        return None, None  # Pillow would decode the image to search for EXIF data behind the pixels
    try:
        exif = image.getexif()
        text = exif.get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.DateTimeOriginal)
        orientation = exif.get(ExifTags.Base.Orientation)
    except IMAGE_DECODING_ERRORS:
        return None, None
    try:
        return orientation, datetime.strptime(str(text)[:19], _DATE_FORMAT)
    except ValueError:
        return orientation, None
