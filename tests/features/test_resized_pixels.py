"""Decoding processes send bytes, from which the encoder gets the pixels of its preprocessing."""

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.features.resized_pixels import normalize_resized, resize_for_encoder

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
