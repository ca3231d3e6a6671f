"""Resizing by matrix products is that of Pillow."""

import numpy as np
import torch
from PIL import Image

from surelabel.export.graphs.pixel_resizing import PixelResizing, bicubic_weights


def test_images_are_resized_like_pillow():
    pixels = np.random.default_rng(0).random((9, 7), dtype=np.float32)
    for height, width in ((4, 3), (20, 30), (9, 5)):
        expected = np.array(
            Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
        )
        batch = torch.from_numpy(pixels).expand(2, 3, -1, -1)
        resized = PixelResizing((9, 7), (height, width))(batch)
        np.testing.assert_allclose(resized[1, 2], expected, atol=1e-6)


def test_the_same_size_returns_the_images_unchanged():
    pixels = torch.rand(1, 3, 4, 5)
    assert PixelResizing((4, 5), (4, 5))(pixels) is pixels


def test_the_weights_of_a_pixel_sum_to_one():
    torch.testing.assert_close(bicubic_weights(10, 3).sum(1), torch.ones(3))
