"""Decode image files to upright RGB images."""

import ctypes
import logging
import os
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError, _imaging
from PIL.ImageFile import ImageFile

from surelabel.data.heif_images import is_heif_image, open_heif_image
from surelabel.data.image_extras import IMAGE_EXTRAS
from surelabel.data.image_memory import check_image_memory
from surelabel.data.raw_images import is_raw_image, open_raw_preview
from surelabel.errors import DataError, InputError
from surelabel.storage.stored_images import open_stored_image

PIXELS_PER_BAND = 2**16  # of each horizontal band in which an image is converted
IMAGE_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "JPEG2000", "PPM")
COMMON_SUFFIXES = frozenset(  # of formats that Pillow decodes
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".dib", ".tif"}
    | {".tiff", ".webp", ".avif", ".jp2", ".j2k", ".jpx", ".ppm", ".pgm", ".pbm", ".pnm"}
)
IMAGE_SUFFIXES = COMMON_SUFFIXES.union(*(extra.suffixes for extra in IMAGE_EXTRAS))

logging.getLogger("PIL").addHandler(logging.NullHandler())  # no log lines on stderr


def _discard_messages_of_libtiff() -> None:
    """Remove the functions of libtiff that print messages about damaged files to standard error.

    Other messages are still printed. This is safe with threads, unlike a temporary redirection of
    standard error. If Pillow does not export the symbols of libtiff, nothing is changed.
    """
    with suppress(OSError, AttributeError):
        libtiff = ctypes.CDLL(_imaging.__file__)
        libtiff.TIFFSetErrorHandler(None)
        libtiff.TIFFSetWarningHandler(None)


_discard_messages_of_libtiff()

_TRANSPOSE_OF_ORIENTATION = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_TRANSPOSES_WITHIN_ROWS = {  # the rows of the image are rows of the result
    Image.Transpose.FLIP_LEFT_RIGHT,
    Image.Transpose.ROTATE_180,
    Image.Transpose.FLIP_TOP_BOTTOM,
}
_REVERSING_TRANSPOSES = {  # the last row of the image is the first row or column of the result
    Image.Transpose.ROTATE_180,
    Image.Transpose.FLIP_TOP_BOTTOM,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSVERSE,
}
_TRUNCATION = re.compile(
    "truncated|end of file|file size too small|insufficient input", re.IGNORECASE
)
_PILLOW_LIMIT_LOCK = threading.Lock()
IMAGE_DECODING_ERRORS = (  # exceptions of Pillow's decoders for damaged files
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RuntimeError,
    TypeError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    struct.error,
    zlib.error,
)


def open_image(source: str | Path | bytes, *, min_side: int) -> Image.Image:
    """Read an image file, or the bytes of an image file, as an upright RGB image.

    - A JPEG is decoded at 1/2, 1/4 or 1/8 of its size if both sides still have at least
      ``min_side`` pixels.
    - If the file is an animation, only the first frame is read. If a HEIC file has several images,
      the primary image is read.
    - For a RAW image, the largest embedded preview is read, not the values of the sensor.
    - Transparent pixels are blended with white.
    - 16-bit grey values are divided by 257. 32-bit integers in [0, 65535] are treated as 16-bit
      values, and floats in [0, 1] as intensities. If a value is outside these ranges, all values
      are scaled linearly from their minimum and maximum to [0, 255], since the white level is
      unknown.

    The memory for decoding is limited by :func:`image_memory_limit`, and computed before decoding.
    The limit of Pillow, ``Image.MAX_IMAGE_PIXELS``, does not apply.

    Args:
        source: Path of an image file, or the content of the file as bytes. The format is one of
            ``IMAGE_FORMATS``, HEIC (with the extra ``heic``) or RAW (with the extra ``raw``); it is
            detected from the content. The file must be a regular file.
        min_side: Minimum side length in pixels of a downscaled JPEG, >= 1.

    Returns:
        The decoded image in mode RGB. The file is closed.

    Raises:
        DataError: If the file cannot be decoded, or if decoding would take more memory than the
            limit. The message is ``PATH: reason``, or the reason alone for bytes.
        InputError: If ``min_side`` is below 1.
    """
    if min_side < 1:
        raise InputError(f"min_side must be 1 pixel or more; got {min_side}.")
    if isinstance(source, bytes):
        return _decode_image(BytesIO(source), min_side)
    with open_image_file(source) as stream:
        try:
            return _decode_image(stream, min_side)
        except DataError as error:
            raise DataError(f"{source}: {error}") from error.__cause__


@contextmanager
def open_image_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open an image file for reading bytes, without waiting for a named pipe or a device.

    Args:
        path: Path of the file, of a link to the file, of a member of a tar archive or of a cell of
            a Parquet table, or URL of an object.

    Raises:
        DataError: If the file cannot be opened or read, or is not a regular file. The message is
            ``PATH: reason``.
    """
    try:
        with open_stored_image(path, remedy="") as stream:
            yield stream
    except DataError as error:
        prefix = f"{path} cannot be read: "
        if not str(error).startswith(prefix):
            raise
        reason = str(error).removeprefix(prefix).rstrip(". ")
        raise DataError(f"{path}: {reason[:1].lower()}{reason[1:]}") from error


def _decode_image(stream: BinaryIO, min_side: int) -> Image.Image:
    """Return an upright RGB image.

    Raises:
        DataError: If the image cannot be decoded, or would take too much memory.
    """
    Image.init()  # load all plug-ins; Pillow loads only the common ones by default
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return _decode_image_within_memory(stream, min_side)
            except Image.DecompressionBombError:
                with without_pixel_limit_of_pillow():
                    return _decode_image_within_memory(stream, min_side)
    except DataError:
        raise
    except IMAGE_DECODING_ERRORS as error:
        raise DataError(_describe_image_decoding_error(stream, error)) from error


def _decode_image_within_memory(stream: BinaryIO, min_side: int) -> Image.Image:
    if is_raw_image(stream):
        stream = open_raw_preview(stream)
    with _open_encoded_image(stream) as image:
        if image.format != "HEIF":  # the thumbnail of HEIF can differ from the image
            image.draft(None, (min_side, min_side))
        check_image_memory(image, stream, min_side=min_side)
        image.load()
        check_image_memory(image, stream, min_side=min_side)  # EXIF data can follow the pixels
        return to_upright_rgb_image(image)


def _open_encoded_image(stream: BinaryIO) -> ImageFile:
    """Open an image without decoding the pixels."""
    if is_heif_image(stream):
        return open_heif_image(stream)
    return Image.open(stream, formats=IMAGE_FORMATS)


@contextmanager
def without_pixel_limit_of_pillow() -> Iterator[None]:
    """Disable the global pixel limit of Pillow, for an image within the memory limit."""
    with _PILLOW_LIMIT_LOCK:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def to_upright_rgb_image(image: Image.Image) -> Image.Image:
    """Rotate an image by its EXIF orientation, blend transparency with white, and return RGB.

    Raises:
        InputError: If a pixel is NaN or infinite.
    """
    orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    transpose = _TRANSPOSE_OF_ORIENTATION.get(orientation)
    if image.mode == "RGB" and not image.has_transparency_data:
        image.load()
        return image if transpose is None else image.transpose(transpose)
    return _convert_image_by_bands(image, transpose)


def _convert_image_by_bands(image: Image.Image, transpose: Image.Transpose | None) -> Image.Image:
    """Return an RGB image, without other copies of the whole image."""
    value_range = _value_range_of_image(image) if image.mode[0] in "IF" else None
    is_sideways = transpose is not None and transpose not in _TRANSPOSES_WITHIN_ROWS
    upright = Image.new("RGB", image.size[::-1] if is_sideways else image.size)
    for top, band in _horizontal_bands_of_image(image):
        rgb = _to_rgb_image(band, value_range)
        if transpose is not None:
            rgb = rgb.transpose(transpose)
        start = image.height - top - band.height if transpose in _REVERSING_TRANSPOSES else top
        upright.paste(rgb, (start, 0) if is_sideways else (0, start))
    return upright


def _horizontal_bands_of_image(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """Yield bands of an image, with the first row of each band."""
    n_rows = max(1, PIXELS_PER_BAND // image.width)
    for top in range(0, image.height, n_rows):
        yield top, image.crop((0, top, image.width, min(top + n_rows, image.height)))


def _to_rgb_image(image: Image.Image, value_range: tuple[float, float] | None) -> Image.Image:
    """Return an RGB image.

    Args:
        image: Image or band of an image.
        value_range: Pixel values that are mapped to 0 and 255, if a pixel has more than 8 bits.
    """
    if value_range is not None:
        low, high = value_range
        values = np.asarray(image).astype(np.float64)
        scaled = np.rint((values - low) / ((high - low) or 1) * 255).astype(np.uint8)
        image = Image.fromarray(scaled)
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert("RGB")


def _value_range_of_image(image: Image.Image) -> tuple[float, float]:
    """Return the pixel values that are mapped to 0 and 255.

    Raises:
        InputError: If a pixel is NaN or infinite.
    """
    low, high = np.inf, -np.inf
    for _, band in _horizontal_bands_of_image(image):
        values = np.asarray(band)
        if not np.isfinite(values).all():
            raise InputError("pixel values must be finite; got NaN or infinity")
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    white = 1.0 if image.mode == "F" else 65535.0
    return (low, high) if low < 0 or high > white else (0.0, white)


def _describe_image_decoding_error(stream: BinaryIO, error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "too large for the available memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if stream.seek(0, os.SEEK_END) == 0:
        return "empty file"
    if isinstance(error, UnidentifiedImageError):
        return f"not an image of a supported format ({', '.join(IMAGE_FORMATS)}, HEIC, RAW)"
    if _TRUNCATION.search(str(error)):
        return "truncated file"
    return f"damaged file ({' '.join(str(error).split()) or type(error).__name__})"
