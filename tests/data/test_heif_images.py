import io
import struct
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps
from pillow_heif import from_bytes

from surelabel.data.heif_images import is_heif_image
from surelabel.data.image_memory import image_memory_limit
from surelabel.data.images import open_image
from surelabel.errors import DataError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


@pytest.fixture
def scene():
    """A green image whose upper left quarter is blue and whose lower left quarter is red."""
    image = Image.new("RGB", (128, 64), GREEN)
    image.paste(RED, (0, 32, 64, 64))
    image.paste(BLUE, (0, 0, 64, 32))
    return image


def heif_file(image, *, mode=None, more_images=(), **options):
    """Return the content of a HEIF file; the orientation of EXIF data becomes a rotation box."""
    content = image if mode else image.tobytes()
    file = from_bytes(mode or image.mode, (128, 64) if mode else image.size, content)
    for other in more_images:
        file.add_from_pillow(other)
    buffer = io.BytesIO()
    fast = {"quality": 80, "chroma": 444, "enc_params": {"preset": "ultrafast"}}
    file.save(buffer, **fast | options)
    return buffer.getvalue()


def exif_of_orientation(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def assert_images_are_close(image, expected):
    assert (image.mode, image.size) == ("RGB", expected.size)
    assert np.abs(np.asarray(image, int) - np.asarray(expected, int)).mean() < 3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_heic_image_is_upright_in_every_orientation(scene, orientation, tmp_path):
    path = tmp_path / "image.heic"
    path.write_bytes(heif_file(scene, exif=exif_of_orientation(orientation)))
    scene.getexif()[0x0112] = orientation
    assert_images_are_close(open_image(path, min_side=1), ImageOps.exif_transpose(scene))


def test_exif_data_without_a_rotation_of_the_file_do_not_rotate(scene):
    content = bytearray(heif_file(scene, exif=exif_of_orientation(6)))
    angle = content.index(b"irot") + 4
    assert content[angle] == 3
    content[angle] = 0
    assert_images_are_close(open_image(bytes(content), min_side=1), scene)


def test_heic_is_detected_from_the_content(scene, tmp_path):
    path = tmp_path / "exported.jpg"
    path.write_bytes(heif_file(scene))
    assert_images_are_close(open_image(path, min_side=1), scene)
    avif = io.BytesIO()
    scene.save(avif, "AVIF")
    assert not is_heif_image(avif)
    assert avif.tell() == 0


@pytest.mark.parametrize(
    ("brands", "expected"),
    [
        (b"heic\0\0\0\0mif1heic", True),
        (b"mif1\0\0\0\0mif1", True),
        (b"mif1\0\0\0\0mif1avif", False),
        (b"avif\0\0\0\0mif1miaf", False),
        (b"isom\0\0\0\0mp41", False),
        (b"crx \0\0\0\1crx isom", False),
    ],
)
def test_the_brands_tell_heic_from_avif_and_videos(brands, expected):
    content = struct.pack(">I", 8 + len(brands)) + b"ftyp" + brands + b"mif1 behind the box"
    assert is_heif_image(io.BytesIO(content)) is expected


def test_other_modes_become_rgb_on_white(scene):
    grey = Image.linear_gradient("L").resize((64, 64))
    assert_images_are_close(open_image(heif_file(grey), min_side=1), grey.convert("RGB"))
    veiled = scene.convert("RGBA")
    veiled.putalpha(0)
    white = Image.new("RGB", scene.size, "white")
    assert_images_are_close(open_image(heif_file(veiled), min_side=1), white)


def test_ten_bits_become_eight(scene):
    deep = (np.asarray(scene).astype(np.uint16) * 257).tobytes()
    assert_images_are_close(open_image(heif_file(deep, mode="RGB;16"), min_side=1), scene)


def test_the_primary_image_and_not_its_thumbnail_is_read(scene):
    first = Image.new("RGB", (64, 64), RED)
    content = heif_file(first, more_images=[scene], primary_index=1, thumbnails=[32])
    assert b"thmb" in content
    assert_images_are_close(open_image(content, min_side=16), scene)


def test_a_truncated_heic_image_is_refused(scene):
    content = heif_file(scene.effect_spread(9))
    for length in (20, 40, len(content) // 2, len(content) - 5):
        with pytest.raises(DataError, match=r"^(truncated file$|damaged file \()"):
            open_image(content[:length], min_side=1)


@pytest.mark.parametrize("size", [(16, 16), (0, 0), (30_000, 30_000), (2**31, 1)])
def test_a_wrong_size_in_the_header_is_refused_without_decoding(scene, size):
    content = heif_file(scene)
    start = content.index(b"ispe") + 8
    hostile = content[:start] + struct.pack(">II", *size) + content[start + 8 :]
    with pytest.raises(DataError, match=r"^damaged file \(|^decoding 30000 × 30000 pixels|MB$"):
        open_image(hostile, min_side=1)


def test_the_memory_is_limited(scene):
    content = heif_file(scene.resize((600, 500)))
    with (
        image_memory_limit(3),
        pytest.raises(DataError, match=r"^decoding 600 × 500 pixels \(HEIF, RGB\) takes 4 MB"),
    ):
        open_image(content, min_side=1)
    with image_memory_limit(4):
        assert open_image(content, min_side=1).size == (600, 500)


def test_the_limit_of_pillow_does_not_apply(scene, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert open_image(heif_file(scene), min_side=1).size == scene.size


def test_without_pillow_heif_the_reason_names_the_extra(scene, monkeypatch):
    content = heif_file(scene)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(
        DataError,
        match=r"^HEIC images need the package pillow-heif; run pip install 'surelabel\[heic\]'$",
    ):
        open_image(content, min_side=1)


def test_no_format_is_registered_in_pillow(scene):
    open_image(heif_file(scene), min_side=1)
    assert "HEIF" not in Image.OPEN
