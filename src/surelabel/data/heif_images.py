"""Open HEIF images, such as HEIC photographs of phones, with the optional package pillow-heif."""

from typing import BinaryIO

from PIL.ImageFile import ImageFile

from surelabel.data.image_extras import HEIC
from surelabel.errors import DataError

_HEVC_BRANDS = frozenset(
    {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}  # coded as HEVC
    | {b"mif1", b"msf1"}  # any codec
)
_AVIF_BRANDS = frozenset({b"avif", b"avis"})  # Pillow decodes these
_MAX_HEADER = 256  # bytes; files of cameras have about 10 brands


def is_heif_image(stream: BinaryIO) -> bool:
    """Return True if the brands at the start of a file state that it is HEIF and not AVIF.

    Args:
        stream: File at any position; the position is set to the start.
    """
    stream.seek(0)
    header = stream.read(_MAX_HEADER)
    stream.seek(0)
    if header[4:8] != b"ftyp":
        return False
    end = min(int.from_bytes(header[:4], "big"), len(header))
    brands = {header[8:12], *(header[start : start + 4] for start in range(16, end, 4))}
    return not brands.isdisjoint(_HEVC_BRANDS) and brands.isdisjoint(_AVIF_BRANDS)


def open_heif_image(stream: BinaryIO) -> ImageFile:
    """Open the primary image of a HEIF file, without decoding the pixels.

    The rotation and the mirroring of the file are applied by the decoder, so the orientation in the
    EXIF data is 1. The thumbnail in the file is never used.

    Args:
        stream: File of the image, at the start.

    Raises:
        DataError: If pillow-heif is not installed.
        SyntaxError: If the header of the file is damaged.
    """
    try:
        from pillow_heif import HeifImageFile
    except ImportError as error:
        raise DataError(f"HEIC images need the package pillow-heif; {HEIC.remedy}") from error
    image: ImageFile = HeifImageFile(stream)  # type: ignore[no-untyped-call]
    return image
