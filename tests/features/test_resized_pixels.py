"""Decoding processes send bytes, from which the encoder gets the pixels of its preprocessing."""

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.encoders.image_only.exported_model import exported_model
from surelabel.features.resized_pixels import (
    normalize_resized,
    resize_for_encoder,
    takes_raw_images,
)

IMAGES = [
    Image.fromarray(np.random.default_rng(n).integers(0, 256, (40, 30, 3), dtype=np.uint8))
    for n in range(3)
]


class OtherPreprocessing:
    """Encoder whose preprocessing is a function of its user."""

    def preprocess(self, image):
        return torch.from_numpy(np.array(image, np.float32)).permute(2, 0, 1)[:, :8, :8] / 7


@pytest.mark.parametrize(
    ("load", "dtype"),
    [
        (lambda: load_encoder("tiny-vit"), np.uint8),
        (lambda: load_encoder("tiny-rn"), np.uint8),
        (OtherPreprocessing, np.float32),
    ],
    ids=["tiny-vit", "tiny-rn", "other"],
)
def test_the_encoder_gets_the_pixels_of_its_preprocessing(load, dtype):
    encoder = load()
    resized = np.stack([resize_for_encoder(encoder, image) for image in IMAGES])
    assert resized.dtype == dtype
    expected = torch.stack([encoder.preprocess(image) for image in IMAGES])
    assert torch.equal(normalize_resized(encoder, resized), expected)


def test_an_exported_model_gets_views_or_images_in_their_original_size(exported_file):
    image = Image.fromarray(np.arange(60 * 40 * 3, dtype=np.uint8).reshape(60, 40, 3))
    views = exported_model(exported_file(inputs="views"), "cpu")
    raw = exported_model(exported_file(inputs="raw"), "cpu")
    assert (takes_raw_images(views), takes_raw_images(raw)) == (False, True)
    assert np.array_equal(resize_for_encoder(raw, image), np.asarray(image))
    pixels = np.stack([resize_for_encoder(views, image)] * 2)
    assert (pixels.shape, pixels.dtype) == ((2, 5, 8, 8, 3), np.uint8)
    normalized = normalize_resized(views, pixels)
    assert normalized.shape == (2, 5, 3, 8, 8)
    for edges, found in zip(
        [(0, 0, 40, 60), (0, 0, 20, 30), (20, 0, 40, 30), (0, 30, 20, 60), (20, 30, 40, 60)],
        normalized[1],
        strict=True,
    ):
        tile = image.crop(edges).resize((8, 8), Image.Resampling.BICUBIC)
        assert torch.equal(found, views.preprocess(image if edges[2] - edges[0] == 40 else tile))
