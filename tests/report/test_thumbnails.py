import base64
from io import BytesIO

import numpy as np
from PIL import Image

from surelabel.report.thumbnails import load_thumbnail, thumbnail_jpeg_data_uri


def test_a_thumbnail_keeps_the_shape_and_is_never_larger_than_asked(tmp_path):
    Image.new("RGB", (600, 300), "red").save(tmp_path / "wide.png")
    assert load_thumbnail(str(tmp_path / "wide.png")).size == (192, 96)


def test_a_small_image_is_not_enlarged(tmp_path):
    Image.new("RGB", (20, 30), "red").save(tmp_path / "small.png")
    assert load_thumbnail(str(tmp_path / "small.png")).size == (20, 30)


def test_a_image_that_cannot_be_read_has_no_thumbnail(tmp_path):
    (tmp_path / "text.png").write_text("no image")
    assert load_thumbnail(str(tmp_path / "text.png")) is None
    assert load_thumbnail(str(tmp_path / "gone.png")) is None


def test_the_address_of_a_jpeg_holds_the_image():
    kind, _, data = thumbnail_jpeg_data_uri(Image.new("RGB", (16, 8), (0, 0, 255))).partition(",")
    assert kind == "data:image/jpeg;base64"
    pixels = np.asarray(Image.open(BytesIO(base64.b64decode(data))))
    assert pixels.shape == (8, 16, 3)
    assert np.abs(pixels[4, 8].astype(int) - [0, 0, 255]).max() < 6
