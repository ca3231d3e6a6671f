"""Read previews in RAW images of cameras with the optional package rawpy."""

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

from PIL import ExifTags, Image

from surelabel.data.image_extras import RAW
from surelabel.data.image_memory import check_raw_image_memory
from surelabel.errors import DataError

_SIGNATURES = (b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"\0MRM", b"FOVb")
_DNG_VERSION, _PHOTOMETRIC, _SUB_DIRECTORIES = 50706, 262, 330  # tags of a TIFF directory
_SENSOR_VALUES = {32803, 34892}  # photometric interpretation: colour filter array, linear values
_MAX_DIRECTORIES = 8  # of a chain, and below the first directory
_CAN_BE_READ = "can be read; convert the image to JPEG or TIFF"
_ORIENTATION_OF_FLIP = (1, 2, 4, 3, 5, 8, 6, 7)  # EXIF orientation of each rotation of LibRaw


def is_raw_image(stream: BinaryIO) -> bool:
    """Return True if the content of a file is a RAW image.

    Many RAW formats are TIFF files. Such a file is a RAW image if it has a DNG version, or if a
    directory contains the values of a sensor.

    Args:
        stream: File at any position; the position is set to the start.
    """
    stream.seek(0)
    header = stream.read(16)
    try:
        if header[:4] in (b"II*\0", b"MM\0*"):
            return header[8:10] == b"CR" or _has_sensor_values(stream, header)
    finally:
        stream.seek(0)
    is_canon = header[4:12] == b"ftypcrx " or header[6:14] == b"HEAPCCDR"
    return is_canon or header.startswith(_SIGNATURES)


def _has_sensor_values(stream: BinaryIO, header: bytes) -> bool:
    """Return True if a directory of a TIFF file contains the values of a sensor."""
    order = "<" if header[:1] == b"I" else ">"
    (first,) = struct.unpack(f"{order}I", header[4:8]) if len(header) >= 8 else (0,)
    for tags in _tiff_directories(stream, order, first):
        if _is_sensor_directory(tags):
            return True
        n_below, value = tags.get(_SUB_DIRECTORIES, (0, 0))
        n_below = min(n_below, _MAX_DIRECTORIES)
        offsets = [value]
        if n_below > 1:
            stream.seek(value)
            content = stream.read(4 * n_below)
            offsets = [o for (o,) in struct.iter_unpack(f"{order}I", content[: len(content) & ~3])]
        for offset in offsets if n_below else ():
            if any(_is_sensor_directory(t) for t in _tiff_directories(stream, order, offset)):
                return True
    return False


def _is_sensor_directory(tags: dict[int, tuple[int, int]]) -> bool:
    return _DNG_VERSION in tags or tags.get(_PHOTOMETRIC, (0, 0))[1] in _SENSOR_VALUES


def _tiff_directories(
    stream: BinaryIO, order: str, offset: int
) -> Iterator[dict[int, tuple[int, int]]]:
    """Yield the tags of a chain of directories, each tag with its count and its value or offset."""
    for _ in range(_MAX_DIRECTORIES):
        stream.seek(offset)
        count = stream.read(2)
        if not offset or len(count) < 2:
            return
        entries = stream.read(12 * struct.unpack(f"{order}H", count)[0])
        following = stream.read(4)
        whole_entries = entries[: len(entries) // 12 * 12]
        tags = {}
        for tag, kind, n, field in struct.iter_unpack(f"{order}HHI4s", whole_entries):
            code = "H2x" if kind == 3 and n == 1 else "I"
            tags[tag] = (n, struct.unpack(f"{order}{code}", field)[0])
        yield tags
        offset = struct.unpack(f"{order}I", following)[0] if len(following) == 4 else 0


def open_raw_preview(stream: BinaryIO) -> BinaryIO:
    """Return the largest preview in a RAW image as a JPEG or TIFF file, with its orientation.

    The values of the sensor are not decoded.

    Args:
        stream: File of the RAW image, at the start.

    Raises:
        DataError: If rawpy is not installed, if the file is damaged or truncated, or if it has no
            preview that can be read. Also if reading the file takes more memory than the limit.
    """
    try:
        import rawpy
    except ImportError as error:
        raise DataError(f"RAW images need the package rawpy; {RAW.remedy}") from error
    check_raw_image_memory(stream)
    try:
        with rawpy.RawPy() as raw:
            content = stream.read()
            raw.open_buffer(BytesIO(content))
            preview = raw.extract_thumb().data
            orientation = _ORIENTATION_OF_FLIP[raw.sizes.flip & 7]
    except (rawpy.LibRawNoThumbnailError, rawpy.LibRawUnsupportedThumbnailError) as error:
        raise DataError(f"RAW image without an embedded preview that {_CAN_BE_READ}") from error
    except (rawpy.LibRawError, rawpy.NotSupportedError) as error:
        raise DataError(f"damaged RAW file ({_reason_of_libraw(error)})") from error
    if not _is_in_file(preview if isinstance(preview, bytes) else preview.tobytes(), content):
        raise DataError(
            f"truncated RAW image, or RAW image without an embedded preview that {_CAN_BE_READ}"
        )
    del raw, content
    if isinstance(preview, bytes):  # a JPEG file, in which LibRaw sets the orientation
        return BytesIO(preview)
    file = BytesIO()
    tags = {ExifTags.Base.Orientation: orientation}
    Image.fromarray(preview).save(file, "TIFF", tiffinfo=tags)
    return file


def _is_in_file(preview: bytes, content: bytes) -> bool:
    """Return True if a preview is a part of the file, apart from an EXIF segment at its start.

    If the file is truncated, LibRaw returns memory of other content in place of missing bytes.
    """
    start = 0
    if preview[:4] == b"\xff\xd8\xff\xe1":  # LibRaw inserts the EXIF segment with the orientation
        start = 4 + int.from_bytes(preview[4:6], "big")
    return preview[start:] in content


def _reason_of_libraw(error: Exception) -> str:
    """Return the message of an error of LibRaw, which is given as bytes."""
    message = error.args[0] if error.args else ""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return text or type(error).__name__
