import numpy as np
import pytest
import torch
from PIL import Image
from transformers.models.siglip2.image_processing_pil_siglip2 import (
    Siglip2ImageProcessorPil,
    get_image_size_for_max_num_patches,
)

from surelabel.encoders.transformers.naflex import NaflexPreprocessor, naflex_grid
from surelabel.errors import InputError

SETTINGS = {"mean": [0.5, 0.4, 0.3], "std": [0.5, 0.25, 0.2], "interpolation": "bilinear"}


@pytest.fixture(scope="module")
def naflex():
    return NaflexPreprocessor(SETTINGS, patch_size=4, max_num_patches=30)


@pytest.mark.parametrize("size", [(1, 1), (480, 640), (3000, 2), (2, 3000), (17, 31), (8000, 6000)])
@pytest.mark.parametrize(("patch_size", "max_num_patches"), [(16, 256), (14, 100), (4, 30)])
def test_the_grid_is_that_of_transformers(size, patch_size, max_num_patches):
    rows, columns = naflex_grid(*size, patch_size=patch_size, max_num_patches=max_num_patches)
    height, width = get_image_size_for_max_num_patches(*size, patch_size, max_num_patches)
    assert (rows * patch_size, columns * patch_size) == (height, width)
    assert rows * columns <= max_num_patches


@pytest.mark.parametrize("size", [(40, 64), (300, 5), (6, 8), (25, 25)])
def test_patches_are_those_of_transformers_for_any_aspect_ratio(naflex, size):
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    processor = Siglip2ImageProcessorPil(
        patch_size=4,
        max_num_patches=30,
        image_mean=SETTINGS["mean"],
        image_std=SETTINGS["std"],
        resample=Image.Resampling.BILINEAR,
    )
    expected = processor(images=[Image.fromarray(pixels)], return_tensors="pt")
    row = naflex(Image.fromarray(pixels))
    assert row.shape == (3, 4, 4 * 30 + 1)
    for name, tensor in naflex.unpack(row[None])._asdict().items():
        torch.testing.assert_close(tensor, expected[name].to(tensor.dtype), msg=name)


def test_the_input_side_is_not_below_the_shorter_side_of_a_resized_image(naflex):
    grids = [naflex_grid(h, w, patch_size=4, max_num_patches=30) for h in (9, 99) for w in (9, 90)]
    assert all(min(grid) * 4 <= naflex.input_side for grid in grids)
    assert naflex.settings["size"] == [20, 20]  # as many pixels as 25 of 30 patches


def test_pixels_of_another_size_are_refused(naflex):
    with pytest.raises(InputError, match=r"\(n, 3, 4, 121\); got \(1, 3, 4, 120\)"):
        naflex.unpack(torch.zeros(1, 3, 4, 120))
