"""The views of a graph are described so that other programs can cut them."""

import pytest
import torch
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.export.graphs.pixel_features import (
    PixelFeatures,
    SmallImagePixelFeatures,
    TilePixelFeatures,
    encoder_network,
)
from surelabel.views import TileLayout

GRIDS = [TileLayout(2, 2), TileLayout(3, 1)]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def described_boxes(rows, columns, width, height):
    """Return the boxes of the rule in the description of the views."""
    n_rows, n_columns = min(rows, height), min(columns, width)
    boxes = []
    for r in range(rows):
        for c in range(columns):
            i, j = r * n_rows // rows, c * n_columns // columns
            x = [round(k * width / n_columns) for k in (j, j + 1)]
            y = [round(k * height / n_rows) for k in (i, i + 1)]
            boxes.append((x[0], y[0], x[1] - x[0], y[1] - y[0]))
    return boxes


@pytest.mark.parametrize("size", [(96, 96), (101, 50), (2, 1)])
def test_the_described_boxes_are_those_of_the_layouts(encoder, size):
    views = TilePixelFeatures(encoder, ["images"], GRIDS).views
    assert [(grid["rows"], grid["columns"]) for grid in views["grids"]] == [(2, 2), (3, 1)]
    for layout, grid in zip(GRIDS, views["grids"], strict=True):
        boxes = [(b.left, b.top, b.width, b.height) for b in layout.boxes(size, "")]
        assert boxes == described_boxes(**grid, width=size[0], height=size[1])


@pytest.mark.parametrize("kinds", [["images"], ["patches"]])
def test_the_whole_image_is_the_first_entry_and_the_tiles_follow(encoder, kinds):
    module = TilePixelFeatures(encoder, kinds, GRIDS)
    assert module.input_shape == (8, 3, 96, 96)
    pixels = torch.rand(2, *module.input_shape)
    features = module(pixels)
    torch.testing.assert_close(features.pooled, encoder.encode_images(pixels[:, 0]).pooled)
    torch.testing.assert_close(features.views[:, 6], encoder.encode_images(pixels[:, 7]).pooled)
    assert (features.patches is None) == (kinds == ["images"])


def test_several_kinds_are_merged(encoder):
    features = PixelFeatures(encoder, ["multi_layer", "trunk"])(torch.rand(2, 3, 96, 96))
    assert features.multi_layer is not None
    assert features.layers is not None


def test_the_small_view_is_close_to_the_image_at_the_default_size(encoder):
    large = encoder.with_image_size(192)
    image = Image.effect_mandelbrot((300, 300), (-3, -2.5, 2, 2.5), 90).convert("RGB")
    module = SmallImagePixelFeatures(large, ["images"], encoder)
    features = module(large.preprocess(image)[None])
    expected = encoder.encode_images(encoder.preprocess(image)[None]).pooled
    assert (features.views[:, 0] * expected).sum() > 0.999
    assert "96 by 96" in module.differences[0]


def test_only_the_image_tower_is_a_part_of_the_graph(encoder):
    assert encoder_network(encoder) is encoder.model.visual
