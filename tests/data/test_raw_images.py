import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

sys.path.insert(0, str(Path(__file__).parent))
from dng_files import dng_file, jpeg_file

from surelabel.data.image_memory import image_memory_limit
from surelabel.data.images import open_image
from surelabel.data.raw_images import is_raw_image, open_raw_preview
from surelabel.errors import DataError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


@pytest.fixture
def scene():
    """A green image whose upper left quarter is blue and whose lower left quarter is red."""
    image = Image.new("RGB", (320, 240), GREEN)
    image.paste(RED, (0, 120, 160, 240))
    image.paste(BLUE, (0, 0, 160, 120))
    return image


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["jpeg", "bitmap"])
def test_the_preview_is_upright_in_every_orientation(scene, kind, orientation):
    preview = jpeg_file(scene) if kind == "jpeg" else np.asarray(scene)
    image = open_image(dng_file(preview, orientation=orientation), min_side=1000)
    scene.getexif()[0x0112] = orientation
    expected = ImageOps.exif_transpose(scene)
    assert (image.mode, image.size) == ("RGB", expected.size)
    assert np.abs(np.asarray(image, int) - np.asarray(expected, int)).mean() < 3


def test_the_preview_and_not_the_thumbnail_of_the_tiff_structure_is_read(scene, tmp_path):
    path = tmp_path / "raw.NEF"
    path.write_bytes(dng_file(jpeg_file(scene), order=">"))
    assert open_image(path, min_side=1000).size == scene.size
    assert open_image(path, min_side=60).size == (80, 60)  # JPEG previews are downscaled


@pytest.mark.parametrize("order", "<>")
def test_a_raw_image_is_detected_from_its_content(scene, order):
    assert is_raw_image(io.BytesIO(dng_file(jpeg_file(scene), order=order)))
    assert is_raw_image(io.BytesIO(dng_file(None, order=order)))
    tag = struct.pack(f"{order}H", 50706)
    without_dng_version = dng_file(None, order=order).replace(tag, tag[::-1])
    assert is_raw_image(io.BytesIO(without_dng_version))  # the sensor is in another directory
    for start in (b"\0\0\0\x18ftypcrx ", b"II\x1a\0\0\0HEAPCCDR", b"II*\0\x10\0\0\0CR\2\0"):
        assert is_raw_image(io.BytesIO(start + bytes(40)))
    assert is_raw_image(io.BytesIO(b"FUJIFILMCCD-RAW 0201"))


@pytest.mark.parametrize("suffix", ["TIFF", "JPEG", "PNG", "AVIF", "GIF"])
def test_other_images_are_no_raw_images(scene, suffix):
    file = io.BytesIO()
    scene.save(file, suffix)
    assert not is_raw_image(file)
    assert file.tell() == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
        b"II*\0\x08\0\0\0\xff\xff",  # 65,535 entries in an empty file
        b"II*\0\x08\0\0\0\0\0\x08\0\0\0",  # the directory follows itself
        b"MM\0*\0\0\0\x08\0\1\1\x4a\0\4\xff\xff\xff\xff\0\0\0\x08\0\0\0\x08",  # many below
    ],
)
def test_a_damaged_directory_is_no_raw_image_and_ends(content):
    assert not is_raw_image(io.BytesIO(content))


def test_a_raw_image_without_preview_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "bare.dng"
    path.write_bytes(dng_file(None))
    with pytest.raises(
        DataError,
        match=r"bare\.dng: RAW image without .*; convert the image to JPEG or TIFF$",
    ):
        open_image(path, min_side=1)


@pytest.mark.parametrize("length", [300, 700, 1500, 2600, 5000])
def test_a_truncated_raw_image_is_refused(scene, length):
    content = dng_file(jpeg_file(scene.effect_spread(5)))
    assert len(content) > 5000
    with pytest.raises(DataError, match=r"damaged|truncated|without an embedded preview"):
        open_image(content[:length], min_side=1000)


@pytest.mark.parametrize("kind", ["jpeg", "bitmap"])
@pytest.mark.parametrize("n_missing", [1, 100, 2000])
def test_memory_behind_a_truncated_preview_is_never_decoded(scene, kind, n_missing):
    content = dng_file(jpeg_file(scene) if kind == "jpeg" else np.asarray(scene))
    for _ in range(5):
        open_image(content, min_side=1000)  # leaves the whole preview in the memory
        with pytest.raises(DataError, match=r"^(truncated )?RAW image.* without an embedded "):
            open_image(content[:-n_missing], min_side=1000)


def test_a_preview_that_is_no_image_is_refused():
    content = dng_file(jpeg_file(Image.new("RGB", (64, 48))))
    start = content.rindex(b"\xff\xd8")
    with pytest.raises(DataError, match=r"damaged|without an embedded preview"):
        open_image(content[:start] + b"x" * (len(content) - start), min_side=1)


def test_the_memory_of_the_file_and_of_the_preview_is_limited(scene):
    content = dng_file(np.asarray(scene.resize((800, 600))))
    with (
        image_memory_limit(5),
        pytest.raises(
            DataError,
            match=r"^reading a RAW image of 2 MB takes 6 MB of memory; --max-image-memory is 5 MB$",
        ),
    ):
        open_image(content, min_side=1)
    large_preview = dng_file(jpeg_file(Image.new("RGB", (1600, 1200))))
    with image_memory_limit(2), pytest.raises(DataError, match=r"^decoding 1600 × 1200 pixels"):
        open_image(large_preview, min_side=1600)


def test_without_rawpy_the_reason_names_the_extra(scene, monkeypatch):
    monkeypatch.setitem(sys.modules, "rawpy", None)
    with pytest.raises(
        DataError, match=r"^RAW images need the package rawpy; run pip install 'surelabel\[raw\]'$"
    ):
        open_image(dng_file(jpeg_file(scene)), min_side=1)


def test_a_bitmap_is_a_tiff_file_without_loss(scene):
    image = Image.open(open_raw_preview(io.BytesIO(dng_file(np.asarray(scene)))))
    assert image.format == "TIFF"
    assert np.array_equal(np.asarray(image), np.asarray(scene))
