import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.export.graph_preprocessing import GraphPreprocessor
from surelabel.views import TileLayout, crop_and_resize_box

SETTINGS = {"mean": [0.5, 0.4, 0.3], "std": [0.25, 0.2, 0.3], "fill_color": 7}
SIZES = [(50, 40), (7, 5), (1, 1), (301, 40), (40, 3), (128, 128), (200, 23)]  # width >= height


def noise_image(width, height, seed=0):
    rng = np.random.default_rng([seed, width, height])
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


def as_batch(image):
    return torch.from_numpy(np.array(image))[None]


@pytest.mark.parametrize("size", [16, [12, 20]])
@pytest.mark.parametrize("mode", ["squash", "shortest", "longest"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_pixels_are_those_of_pillow_up_to_one_level(size, mode, interpolation):
    settings = {**SETTINGS, "size": size, "interpolation": interpolation, "resize_mode": mode}
    preprocess = ImagePreprocessor(settings)
    graph = GraphPreprocessor(preprocess)
    for sides in SIZES:
        image = noise_image(*sides)
        expected = preprocess.resize(image).transpose(2, 0, 1).astype(np.float32)
        difference = np.abs(graph.resize(as_batch(image))[0].numpy() - expected)
        assert difference.max() <= 1
        assert (difference > 0).mean() < 0.02
    pixels = graph(as_batch(image))[0]
    levels = torch.tensor(SETTINGS["std"])[:, None, None] * 255
    assert ((pixels - preprocess(image)).abs() * levels).max() <= 1.001


def test_tall_images_are_resized_along_the_rows_first():
    """Pillow 13 resizes some tall images along the columns first, and earlier versions do not."""
    settings = {**SETTINGS, "size": 16, "interpolation": "bicubic", "resize_mode": "squash"}
    image = noise_image(20, 150)
    rows = image.resize((16, 150), Image.Resampling.BICUBIC)
    expected = np.asarray(rows.resize((16, 16), Image.Resampling.BICUBIC)).astype(np.float32)
    graph = GraphPreprocessor(ImagePreprocessor(settings))
    levels = graph.resize(as_batch(image))[0].numpy().transpose(1, 2, 0)
    assert np.abs(levels - expected).max() <= 1


def test_an_image_of_the_input_size_is_unchanged():
    settings = {**SETTINGS, "size": 16, "interpolation": "bicubic", "resize_mode": "shortest"}
    images = torch.stack([as_batch(noise_image(16, 16, seed))[0] for seed in range(3)])
    levels = GraphPreprocessor(ImagePreprocessor(settings)).resize(images)
    assert torch.equal(levels, images.permute(0, 3, 1, 2).float())


@pytest.mark.parametrize("sides", [(61, 50), (40, 40), (5, 2), (2, 1)])
def test_tiles_are_those_of_the_layouts(sides):
    settings = {**SETTINGS, "size": 16, "interpolation": "bilinear", "resize_mode": "longest"}
    preprocess = ImagePreprocessor(settings)
    layouts = [TileLayout(2, 2), TileLayout(1, 3)]
    image = noise_image(*sides)
    boxes = [box for layout in layouts for box in layout.boxes(image.size, "")]
    tiles = [crop_and_resize_by_rows(image, box) for box in boxes]
    expected = np.stack([preprocess.resize(view) for view in (image, *tiles)]).astype(np.float32)
    levels = GraphPreprocessor(preprocess, layouts).resize(as_batch(image))[0].numpy()
    assert levels.shape == (8, 3, 16, 16)
    assert np.abs(levels.transpose(0, 2, 3, 1) - expected).max() <= 1


def crop_and_resize_by_rows(image, box):
    """Crop a box and resize it along the rows first, also if it is tall."""
    rows = crop_and_resize_box(image, box, size=(16, box.height))
    return rows.resize((16, 16), Image.Resampling.BICUBIC)
