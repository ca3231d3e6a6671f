"""Minimal RAW images in the DNG format: the values of a small sensor and an embedded preview."""

import io
import struct

import numpy as np
from PIL import Image

SENSOR = (32, 24)  # columns and rows of the sensor
MAX_HEADER = 1024  # bytes of all directories
CODES = {1: "B", 2: "s", 3: "H", 4: "I"}  # TIFF type: code of a value


def jpeg_file(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95, **options)
    return file.getvalue()


def tiff_directory(order, start, tags):
    """Return a TIFF directory, which starts at a position, followed by its longer values."""
    rows, values = b"", b""
    first_value = start + 2 + 12 * len(tags) + 4
    for tag, (kind, value) in sorted(tags.items()):
        items = [value] if isinstance(value, int) else value
        content = items if kind == 2 else struct.pack(f"{order}{len(items)}{CODES[kind]}", *items)
        if len(content) > 4:
            content, values = (
                struct.pack(f"{order}I", first_value + len(values)),
                values + content + b"\0" * (len(content) % 2),
            )
        rows += struct.pack(f"{order}HHI", tag, kind, len(items)) + content.ljust(4, b"\0")
    return struct.pack(f"{order}H", len(tags)) + rows + b"\0\0\0\0" + values


def dng_file(preview=None, *, orientation=1, order="<", sensor_tag=330):
    """Return the content of a DNG file.

    Args:
        preview: Embedded preview: a JPEG file, pixels as uint8, ``(h, w, 3)``, or None.
        orientation: EXIF orientation of the RAW image.
        order: Byte order, ``<`` or ``>``.
        sensor_tag: Tag of the position of the directory with the values of the sensor.
    """
    columns, rows = SENSOR
    values = np.arange(columns * rows, dtype=f"{order}u2").tobytes()
    sensor = {254: (4, 0), 256: (4, columns), 257: (4, rows), 258: (3, 16), 259: (3, 1)}
    sensor |= {262: (3, 32803), 273: (4, MAX_HEADER), 277: (3, 1), 278: (4, rows)}
    sensor |= {279: (4, len(values)), 33421: (3, [2, 2]), 33422: (1, [0, 1, 1, 2])}
    first = {271: (2, b"Maker\0"), 272: (2, b"Camera\0"), 274: (3, orientation)}
    first |= {50706: (1, [1, 4, 0, 0]), 50708: (2, b"Maker Camera\0"), sensor_tag: (4, 600)}
    data = b""
    if preview is not None:
        is_jpeg = isinstance(preview, bytes)
        data = preview if is_jpeg else preview.tobytes()
        size = Image.open(io.BytesIO(preview)).size if is_jpeg else preview.shape[1::-1]
        first |= {254: (4, 1), 256: (4, size[0]), 257: (4, size[1]), 258: (3, [8, 8, 8])}
        first |= {259: (3, 7 if is_jpeg else 1), 262: (3, 6 if is_jpeg else 2), 277: (3, 3)}
        first |= {273: (4, MAX_HEADER + len(values)), 278: (4, size[1]), 279: (4, len(data))}
    mark = b"II*\0" if order == "<" else b"MM\0*"
    header = (mark + struct.pack(f"{order}I", 8) + tiff_directory(order, 8, first)).ljust(
        600, b"\0"
    )
    header = (header + tiff_directory(order, 600, sensor)).ljust(MAX_HEADER, b"\0")
    return header + values + data
