"""Width, height and date of an image, from its header."""

import io
from datetime import datetime

import pytest
from PIL import ExifTags, Image

from surelabel.data.image_headers import ImageHeader, image_header_reading, read_image_header


def encoded(format, *, size=(40, 30), date=None, orientation=None):
    exif = Image.Exif()
    exif[ExifTags.Base.Make] = "Pillow writes no EXIF data that consists of a date only"
    if date is not None:
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = date
    if orientation is not None:
        exif[ExifTags.Base.Orientation] = orientation
    buffer = io.BytesIO()
    Image.new("RGB", size).save(buffer, format, exif=exif)
    return buffer.getvalue()


def header_of(content):
    with image_header_reading():
        return read_image_header(io.BytesIO(content))


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_size_and_date_are_read_from_each_format(format):
    header = header_of(encoded(format, date="2023:07:09 18:01:02"))
    assert header == ImageHeader(40, 30, datetime(2023, 7, 9, 18, 1, 2))


@pytest.mark.parametrize("format", ["TIFF", "GIF", "BMP", "PPM", "JPEG2000"])
def test_the_size_is_read_from_formats_without_a_date(format):
    assert header_of(encoded(format)) == ImageHeader(40, 30)


def test_a_heic_image_has_size_and_date():
    from pillow_heif import from_pillow

    image = from_pillow(Image.new("RGB", (64, 128)))
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2023:07:09 18:01:02"
    buffer = io.BytesIO()
    image.save(buffer, exif=exif.tobytes(), enc_params={"preset": "ultrafast"})
    assert header_of(buffer.getvalue()) == ImageHeader(64, 128, datetime(2023, 7, 9, 18, 1, 2))


@pytest.mark.parametrize(("orientation", "size"), [(1, (40, 30)), (3, (40, 30)), (6, (30, 40))])
def test_the_size_is_that_of_the_upright_image(orientation, size):
    assert header_of(encoded("JPEG", orientation=orientation))[:2] == size


@pytest.mark.parametrize(
    "date", ["0000:00:00 00:00:00", "    :  :     :  :  ", "yesterday", "2023:13:01 00:00:00", ""]
)
def test_an_impossible_date_is_none_and_the_size_is_read(date):
    assert header_of(encoded("JPEG", date=date)) == ImageHeader(40, 30)


def test_an_image_above_the_limit_of_pillow_has_a_size():
    buffer = io.BytesIO()
    Image.new("1", (40_000, 5_000)).save(buffer, "PNG", compress_level=1)
    assert header_of(buffer.getvalue()) == ImageHeader(40_000, 5_000)


def test_what_is_no_image_or_damaged_has_nothing_and_raises_nothing():
    whole = encoded("JPEG", date="2023:07:09 18:01:02")
    assert header_of(b"") == header_of(b"text") == header_of(whole[:20]) == ImageHeader()
    for start in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[start : start + 2] = b"\xff\xff"
        header = header_of(bytes(damaged))
        assert header.width is None or header.width > 0
