"""Define the tasks of a worker process that need no recognizer, such as encoding of thumbnails.

Each task returns a value that JSON can represent, and bytes. A task without a value returns None,
and a task without bytes returns no bytes.
"""

from functools import cache
from io import BytesIO
from typing import BinaryIO

from PIL import Image

from surelabel.data.decoding_memory import limit_decoding_memory
from surelabel.data.heif_images import is_heif_image
from surelabel.data.images import (
    IMAGE_DECODING_ERRORS,
    IMAGE_FORMATS,
    open_image,
    open_image_file,
)
from surelabel.data.raw_images import is_raw_image
from surelabel.errors import DataError
from surelabel.storage.stored_images import open_stored_image

JPEG_QUALITY = 82
MAX_CONTENT_BYTES = 128 * 2**20  # of an image that is not a file, such as a member of an archive
UNKNOWN_TYPE = "application/octet-stream"
CONTENT_TYPES = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "DIB": "image/bmp",
    "TIFF": "image/tiff",
    "WEBP": "image/webp",
    "AVIF": "image/avif",
    "JPEG2000": "image/jp2",
    "PPM": "image/x-portable-pixmap",
}


def encode_thumbnail(path: str, side: int) -> tuple[None, bytes]:
    """Return an upright thumbnail as a JPEG file without metadata.

    Args:
        path: Path of the image.
        side: Maximum number of pixels of the longer side. Smaller images are not enlarged.

    Raises:
        DataError: If the image cannot be read, or needs too much memory.
    """
    _limit_memory_once()
    image = open_image(path, min_side=side)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    file = BytesIO()
    image.info.clear()  # a comment or an ICC profile of the image
    image.save(file, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return None, file.getvalue()


def read_content_type(path: str) -> tuple[str, bytes]:
    """Return the content type of an image file, from its content.

    Raises:
        DataError: If the file cannot be read, or is not an image of a supported format.
    """
    _limit_memory_once()
    with open_image_file(path) as stream:
        return _content_type(stream), b""


def read_content(path: str) -> tuple[str, bytes]:
    """Return the content type and the content of an image in a container or an object store.

    Raises:
        DataError: If the content cannot be read, has more than 128 MiB, or is not an image of a
            supported format.
    """
    _limit_memory_once()
    with open_stored_image(path) as stream:
        content = stream.read(MAX_CONTENT_BYTES + 1)
    if len(content) > MAX_CONTENT_BYTES:
        raise DataError(f"The image must have at most {MAX_CONTENT_BYTES} bytes; it has more.")
    return _content_type(BytesIO(content)), content


TASKS = {
    "encode_thumbnail": encode_thumbnail,
    "read_content": read_content,
    "read_content_type": read_content_type,
}


@cache
def _limit_memory_once() -> None:
    limit_decoding_memory()


def _content_type(stream: BinaryIO) -> str:
    """Return the content type of an image from its first bytes, or a general type for RAW files.

    Raises:
        DataError: If the header is not that of an image of a supported format.
    """
    if is_raw_image(stream):
        return UNKNOWN_TYPE
    stream.seek(0)
    if is_heif_image(stream):
        return "image/heif"
    stream.seek(0)
    Image.init()
    try:
        with Image.open(stream, formats=IMAGE_FORMATS) as image:
            return CONTENT_TYPES.get(str(image.format), UNKNOWN_TYPE)
    except (*IMAGE_DECODING_ERRORS, Image.DecompressionBombError) as error:
        raise DataError("The file is not an image of a supported format.") from error
