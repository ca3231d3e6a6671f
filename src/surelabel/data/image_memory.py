"""Compute and limit the memory for decoding an image, from the header of the file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO

from PIL import ExifTags, TiffImagePlugin
from PIL.ImageFile import ImageFile

from surelabel.errors import DataError, InputError

MEGABYTE = 10**6
DEFAULT_IMAGE_MEMORY = 512  # megabytes; an RGB image of 100 megapixels takes 400
JPEG_MARKERS_WITHOUT_LENGTH = {b"", b"\0", b"\1", *(bytes([code]) for code in range(208, 217))}
RGB_BYTES = 4  # bytes per pixel of an RGB image in Pillow, with one unused byte
_BYTES_OF_MODE = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}

_max_image_memory = ContextVar("max_image_memory", default=DEFAULT_IMAGE_MEMORY)


@contextmanager
def image_memory_limit(megabytes: int) -> Iterator[None]:
    """Change the limit of the memory for decoding an image, within a ``with`` block.

    A file whose decoding would take more memory is not decoded; it is skipped as unreadable. The
    limit applies to the current thread, and to worker processes that start within the block.

    Args:
        megabytes: Maximum memory for decoding an image, in megabytes (10^6 bytes), >= 1. The
            default outside of such a block is 512 megabytes.

    Raises:
        InputError: If ``megabytes`` is below 1.

    Example:
        >>> with image_memory_limit(2000):
        ...     max_image_memory()
        2000
        >>> max_image_memory()
        512
    """
    if megabytes < 1:
        raise InputError(f"megabytes must be 1 or more; got {megabytes}.")
    token = _max_image_memory.set(megabytes)
    try:
        yield
    finally:
        _max_image_memory.reset(token)


def max_image_memory() -> int:
    """Return the current limit of the memory for decoding an image, in megabytes."""
    return _max_image_memory.get()


def check_image_memory(image: ImageFile, stream: BinaryIO, *, min_side: int) -> None:
    """Check that decoding and resizing an image takes at most ``max_image_memory()`` megabytes.

    Args:
        image: Opened image whose pixels are not decoded yet.
        stream: File of the image.
        min_side: Length in pixels of the shorter side after resizing.

    Raises:
        DataError: If the image would take more memory than the limit.
    """
    between_resizings = max(image.size) * min_side * RGB_BYTES  # one side is resized first
    n_bytes = max(image_decoding_bytes(image, stream), between_resizings)
    if n_bytes > max_image_memory() * MEGABYTE:
        raise DataError(
            f"decoding {image.width} × {image.height} pixels ({image.format}, {image.mode}) takes "
            f"{-(-n_bytes // MEGABYTE)} MB of memory; --max-image-memory is {max_image_memory()} MB"
        )


def check_raw_image_memory(stream: BinaryIO) -> None:
    """Check that reading a RAW image takes at most ``max_image_memory()`` megabytes.

    The whole file is read, and its preview, which can fill the file, is copied three times. The
    memory for decoding the preview is checked by :func:`check_image_memory`.

    Args:
        stream: File of the RAW image.

    Raises:
        DataError: If the file would take more memory than the limit.
    """
    n_bytes = 4 * _file_size(stream)
    if n_bytes > max_image_memory() * MEGABYTE:
        raise DataError(
            f"reading a RAW image of {-(-n_bytes // (4 * MEGABYTE))} MB takes "
            f"{-(-n_bytes // MEGABYTE)} MB of memory; --max-image-memory is {max_image_memory()} MB"
        )


def image_decoding_bytes(image: ImageFile, stream: BinaryIO) -> int:
    """Return an upper bound of the memory that decoding takes, in bytes, from the header.

    The bound is the sum of:

    - the decoded pixels as Pillow stores them: 1, 2 or 4 bytes per pixel;
    - a copy as an upright RGB image, 4 bytes per pixel, if the image is not upright RGB;
    - the buffers of the decoder. The decoders of baseline JPEG and of PNG, also of interlaced PNG,
      store only some rows. Other decoders store the whole image a second time or more often.

    Args:
        image: Opened image whose pixels are not decoded yet.
        stream: File of the image.
    """
    n_bytes = image.width * image.height * _bytes_per_stored_pixel(image)
    if image.mode != "RGB" or "transparency" in image.info or not _is_upright(image):
        n_bytes += image.width * image.height * RGB_BYTES
    return n_bytes + _decoder_buffer_bytes(image, stream)


def _bytes_per_stored_pixel(image: ImageFile) -> int:
    return _BYTES_OF_MODE.get(image.mode, 4)


def _is_upright(image: ImageFile) -> bool:
    if image.format == "PNG" and image.tile and "exif" not in image.info:
        return True  # Pillow would decode the image to search for EXIF data behind the pixels
    return bool(image.getexif().get(ExifTags.Base.Orientation, 1) == 1)


def _decoder_buffer_bytes(image: ImageFile, stream: BinaryIO) -> int:
    """Return the memory of the decoder beside the decoded pixels, in bytes.

    The numbers of bytes per pixel are measured; a test measures them again.
    """
    n_pixels, codec = image.width * image.height, image.tile[0].codec_name if image.tile else ""
    if codec == "jpeg":
        return _jpeg_coefficient_bytes(image, stream)
    if codec == "libtiff":
        return _tiff_strip_bytes(image) + _file_size(stream)
    if codec in ("ppm", "ppm_plain", "bmp_rle"):  # written in Python: the pixels as bytes, twice
        return 2 * n_pixels * _bytes_per_stored_pixel(image)
    if image.format == "GIF":  # the background of an animation
        return n_pixels
    if image.format == "JPEG2000":  # coefficients of 32 bits, and the samples
        return 6 * n_pixels * len(image.getbands())
    if image.format == "WEBP":  # two canvases and the frame
        return 12 * n_pixels + 2 * _file_size(stream)
    if image.format == "HEIF":
        return _heif_buffer_bytes(image) + 2 * _file_size(stream)
    if image.format == "AVIF":  # planes of up to 16 bits and the frame
        return 16 * n_pixels + 2 * _file_size(stream)
    return 0


def _heif_buffer_bytes(image: ImageFile) -> int:
    """Return twice the size of the decoded planes, plus that of the converted pixels, in bytes."""
    sample_bytes = 2 if image.info.get("bit_depth", 8) > 8 else 1
    n_bands = len(image.getbands())
    n_shared = {420: 1.5, 422: 1.0}.get(image.info.get("chroma", 444), 0.0)  # colour of many pixels
    n_samples = n_bands - (n_shared if n_bands >= 3 else 0.0)
    return int(image.width * image.height * sample_bytes * (2 * n_samples + n_bands))


def _file_size(stream: BinaryIO) -> int:
    position = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(position)
    return size


def _jpeg_coefficient_bytes(image: ImageFile, stream: BinaryIO) -> int:
    """Return the size of the 16-bit coefficients, in bytes, which libjpeg stores for many scans.

    If all components are in one scan, no coefficients are stored, and the size is 0.
    """
    layers = image.layer  # type: ignore[attr-defined]  # (component, across, down, table)
    is_progressive = "progressive" in image.info
    if not is_progressive and _n_components_of_first_scan(stream) == len(layers):
        return 0
    scale = image.decoderconfig[0] if image.decoderconfig else 1  # of a JPEG that is downscaled
    sampling = [across * down for _, across, down, _ in layers]
    return int(2 * image.width * image.height * scale**2 * sum(sampling) / max(sampling))


def _n_components_of_first_scan(stream: BinaryIO) -> int:
    """Return the number of components in the first scan of a JPEG file, or 0 without a scan."""
    position = stream.tell()
    stream.seek(2)
    n_components = 0
    while byte := stream.read(1):
        if byte != b"\xff":
            continue
        while (marker := stream.read(1)) == b"\xff":
            continue
        if marker == b"\xda":
            n_components = stream.read(3)[-1]
            break
        if marker not in JPEG_MARKERS_WITHOUT_LENGTH:
            stream.seek(int.from_bytes(stream.read(2), "big") - 2, os.SEEK_CUR)
    stream.seek(position)
    return n_components


def _tiff_strip_bytes(image: ImageFile) -> int:
    """Return the size of a strip or tile of a TIFF file in bytes, which libtiff decodes at once."""
    tags = image.tag_v2  # type: ignore[attr-defined]
    width = tags.get(TiffImagePlugin.TILEWIDTH, image.width)
    height = tags.get(TiffImagePlugin.TILELENGTH) or min(
        tags.get(TiffImagePlugin.ROWSPERSTRIP, image.height), image.height
    )
    sample_bytes = -(-max(tags.get(TiffImagePlugin.BITSPERSAMPLE, (1,))) // 8)
    return int(width * height * max(4, tags.get(TiffImagePlugin.SAMPLESPERPIXEL, 1) * sample_bytes))
