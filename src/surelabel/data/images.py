"""Decoding of image files to upright RGB images."""

import logging
import os
import struct
import warnings
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from surelabel.errors import DataError, InputError

PIXEL_LIMIT = 178_000_000  # larger images raise an error before decoding
IMAGE_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "JPEG2000", "PPM")
IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".dib", ".tif"}
    | {".tiff", ".webp", ".avif", ".jp2", ".j2k", ".jpx", ".ppm", ".pgm", ".pbm", ".pnm"}
)

logging.getLogger("PIL").addHandler(logging.NullHandler())  # no log lines on stderr

_TRANSPOSE_OF_ORIENTATION = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_DECODE_ERRORS = (  # exceptions of Pillow's decoders for damaged files
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
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


def open_image(source: str | Path | bytes, *, min_side: int) -> Image.Image:
    """Read an image file, or the bytes of an image file, as an upright RGB image.

    - A JPEG is decoded at 1/2, 1/4 or 1/8 of its size if both sides still have at least
      ``min_side`` pixels.
    - If the file is an animation, only the first frame is read.
    - Transparent pixels are blended with white.
    - 16-bit grey values are divided by 257. 32-bit integers in [0, 65535] are treated as 16-bit
      values, and floats in [0, 1] as intensities. If a value is outside these ranges, all values
      are scaled linearly from their minimum and maximum to [0, 255], since the white level is
      unknown.

    Args:
        source: Path of an image file, or the content of the file as bytes. The format is one of
            ``IMAGE_FORMATS``, and the image has at most ``PIXEL_LIMIT`` pixels.
        min_side: Minimum side length in pixels of a downscaled JPEG, >= 1.

    Returns:
        The decoded image in mode RGB. The file is closed.

    Raises:
        DataError: If the file cannot be decoded; the message is ``PATH: reason``, or the reason
            alone for bytes.
        InputError: If ``min_side`` is below 1.
    """
    if min_side < 1:
        raise InputError(f"min_side must be 1 pixel or more; got {min_side}.")
    Image.init()  # load all plug-ins; Pillow loads only the common ones by default
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = BytesIO(source) if isinstance(source, bytes) else source
            with Image.open(file, formats=IMAGE_FORMATS) as image:
                _check_image_pixel_limit(image)
                image.draft(None, (min_side, min_side))
                image.load()
                return to_upright_rgb_image(image)
    except _DECODE_ERRORS as error:
        reason = _describe_image_decoding_error(source, error)
        prefix = "" if isinstance(source, bytes) else f"{source}: "
        raise DataError(f"{prefix}{reason}") from error


def _check_image_pixel_limit(image: Image.Image) -> None:
    if image.width * image.height > PIXEL_LIMIT:
        raise Image.DecompressionBombError


def to_upright_rgb_image(image: Image.Image) -> Image.Image:
    """Return an upright RGB image: rotated by EXIF orientation, transparency blended with white.

    Raises:
        InputError: If a pixel is NaN or infinite.
    """
    return _to_rgb_image(_apply_exif_orientation_to_image(image))


def _apply_exif_orientation_to_image(image: Image.Image) -> Image.Image:
    orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    transpose = _TRANSPOSE_OF_ORIENTATION.get(orientation)
    return image if transpose is None else image.transpose(transpose)


def _to_rgb_image(image: Image.Image) -> Image.Image:
    if image.mode[0] in "IF":
        image = _to_8_bit_image(image)
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert("RGB")


def _to_8_bit_image(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("pixels must be finite; got NaN or infinity")
    low, high = 0.0, 1.0 if image.mode == "F" else 65535.0
    if values.min() < low or values.max() > high:
        low, high = values.min(), values.max()
    return Image.fromarray(np.rint((values - low) / ((high - low) or 1) * 255).astype(np.uint8))


def _describe_image_decoding_error(source: str | Path | bytes, error: BaseException) -> str:
    if isinstance(error, Image.DecompressionBombError):
        return f"more than {PIXEL_LIMIT // 1_000_000} million pixels; possibly a decompression bomb"
    if isinstance(error, MemoryError):
        return "too large for the memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if (len(source) if isinstance(source, bytes) else os.path.getsize(source)) == 0:
        return "empty file"
    if isinstance(error, UnidentifiedImageError):
        return f"not an image of a supported format ({', '.join(IMAGE_FORMATS)})"
    if "truncated" in str(error).lower():
        return "truncated file"
    return f"damaged file ({str(error) or type(error).__name__})"
