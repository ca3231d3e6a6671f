"""Pictures from disk: whatever the file holds comes back upright, in RGB, or is refused."""

import logging
import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from surelabel.errors import DataError, InputError

PIXEL_LIMIT = 178_000_000  # larger pictures are refused before a pixel of them is decoded
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "JPEG2000", "PPM")
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".dib", ".tif"}
    | {".tiff", ".webp", ".avif", ".jp2", ".j2k", ".jpx", ".ppm", ".pgm", ".pbm", ".pnm"}
)

logging.getLogger("PIL").addHandler(logging.NullHandler())  # no lines on stderr unasked

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_DAMAGE = (  # what Pillow's decoders raise when a file is not what it says
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


def open_picture(path: str | Path, *, least_side: int) -> Image.Image:
    """Read one picture, upright and in RGB.

    A JPEG is shrunk by 2, 4 or 8 while it is decoded, as long as both sides keep
    ``least_side`` pixels. Of an animation the first frame is taken. What is transparent
    lies on white. 16-bit grey is divided by 257; 32-bit integers in [0, 65535] count as
    16 bits, floats in [0, 1] as that range, and other deep pixels are stretched from
    their least to their greatest, since their files do not say what white is.

    Args:
        path: A file of one of ``FORMATS``, of up to ``PIXEL_LIMIT`` pixels.
        least_side: Pixels that both sides of a shrunk JPEG must keep, >= 1.

    Returns:
        The picture, mode RGB, fully decoded, its file closed.

    Raises:
        DataError: it cannot be read; the message is ``PATH: a few words why``.
        InputError: ``least_side`` is below 1.
    """
    if least_side < 1:
        raise InputError(f"least_side must be 1 pixel or more. Got {least_side}.")
    Image.init()  # all plug-ins at once; without it Pillow knows only the commonest
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=FORMATS) as picture:
                _check_size(picture)
                picture.draft(None, (least_side, least_side))
                picture.load()
                return upright(picture)
    except _DAMAGE as error:
        raise DataError(f"{path}: {_reason(path, error)}") from error


def _check_size(picture: Image.Image) -> None:
    if picture.width * picture.height > PIXEL_LIMIT:
        raise Image.DecompressionBombError


def upright(picture: Image.Image) -> Image.Image:
    """A picture in memory as encoders take it: turned as its EXIF says, RGB, over white.

    Raises:
        InputError: a pixel is NaN or infinite.
    """
    return _rgb(_turned(picture))


def _turned(picture: Image.Image) -> Image.Image:
    turn = _TURNS.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
    return picture if turn is None else picture.transpose(turn)


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode[0] in "IF":
        picture = _eight_bits(picture)
    if picture.has_transparency_data:
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture.convert("RGBA"))
    return picture.convert("RGB")


def _eight_bits(picture: Image.Image) -> Image.Image:
    deep = np.asarray(picture).astype(np.float64)
    if not np.isfinite(deep).all():
        raise InputError("pixels must be finite numbers: got NaN or infinity")
    low, high = 0.0, 1.0 if picture.mode == "F" else 65535.0
    if deep.min() < low or deep.max() > high:
        low, high = deep.min(), deep.max()
    return Image.fromarray(np.rint((deep - low) / ((high - low) or 1) * 255).astype(np.uint8))


def _reason(path: str | Path, error: BaseException) -> str:
    if isinstance(error, Image.DecompressionBombError):
        return f"more than {PIXEL_LIMIT // 1_000_000} million pixels, which may be an attack"
    if isinstance(error, MemoryError):
        return "too large for the memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if os.path.getsize(path) == 0:
        return "empty file"
    if isinstance(error, UnidentifiedImageError):
        return f"not a picture of a known kind ({', '.join(FORMATS)})"
    if "truncated" in str(error).lower():
        return "truncated file"
    return f"damaged file ({str(error) or type(error).__name__})"
