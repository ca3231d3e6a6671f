import numpy as np
import pytest
from PIL import Image

from surelabel.report.heat_map_drawing import (
    VIRIDIS,
    crop_center_for_heat_map_drawing,
    draw_heat_map,
    min_max_scale_heat_map,
    upsample_heat_map_patches,
    viridis_heat_map_colours,
)


def test_a_heat_map_is_brightest_where_the_patch_is_strongest():
    strength = np.zeros((4, 4))
    strength[1, 2] = 5.0
    pixels = np.asarray(
        draw_heat_map(Image.new("RGB", (64, 64), "grey"), strength, crop_mode="squash").convert("L")
    )
    down, across = np.unravel_index(pixels.argmax(), pixels.shape)
    assert 16 <= down < 32
    assert 32 <= across < 48


def test_a_heat_map_does_not_change_when_scores_are_shifted_and_scaled():
    image = Image.effect_noise((40, 40), 60).convert("RGB")
    strength = np.arange(12.0).reshape(3, 4)
    first, second = (
        draw_heat_map(image, s, crop_mode="squash") for s in (strength, strength * 100 - 7)
    )
    assert np.array_equal(np.asarray(first), np.asarray(second))


def test_equal_patches_are_all_weak():
    assert np.array_equal(min_max_scale_heat_map(np.full((2, 3), 4.0)), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("size", "grid", "seen"),
    [((100, 60), (7, 7), (60, 60)), ((60, 100), (7, 7), (60, 60)), ((100, 100), (2, 4), (100, 50))],
)
def test_the_map_covers_the_central_part_with_the_shape_of_the_grid(size, grid, seen):
    strength = np.random.default_rng(0).random(grid)
    assert draw_heat_map(Image.new("RGB", size), strength, crop_mode="center").size == seen
    assert draw_heat_map(Image.new("RGB", size), strength, crop_mode="squash").size == size


@pytest.mark.parametrize(
    ("size", "grid", "inside"),
    [
        ((90, 30), (6, 6), np.s_[2:4, :]),
        ((30, 90), (6, 6), np.s_[:, 2:4]),
        ((60, 60), (6, 6), np.s_[:, :]),
        ((80, 80), (2, 4), np.s_[:, 1:3]),
        ((77, 33), (7, 7), np.s_[2:5, :]),
    ],
)
def test_the_map_of_a_padded_image_leaves_out_the_patches_of_the_padding(size, grid, inside):
    strength = np.random.default_rng(0).random(grid)
    padding = np.full(grid, 100.0)
    padding[inside] = strength[inside]
    image = Image.effect_noise(size, 60).convert("RGB")
    seen = draw_heat_map(image, padding, crop_mode="border")
    alone = draw_heat_map(image, strength[inside], crop_mode="squash")
    assert seen.size == size
    assert np.array_equal(np.asarray(seen), np.asarray(alone))


def test_a_patch_that_is_half_padding_colours_only_its_half_of_the_image():
    strength = np.zeros((4, 4))
    strength[0] = 1.0  # of 100 by 75 pixels, the first and last half patch are padding
    pixels = draw_heat_map(Image.new("RGB", (100, 75), "grey"), strength, crop_mode="border")
    brightness = np.asarray(pixels.convert("L"), dtype=float).mean(axis=1)
    assert brightness.argmax() == 0
    # the edge of the image is the middle of the first row: full strength; the next middle is 25
    assert np.allclose(brightness[25:], brightness[-1], atol=1.5)
    assert brightness[0] > brightness[12] > brightness[24]


def test_a_sliver_of_a_image_has_a_map_too():
    assert draw_heat_map(Image.new("RGB", (128, 1)), np.eye(4), crop_mode="border").size == (128, 1)


def test_the_central_part_is_central():
    pixels = np.zeros((2, 6, 3), dtype=np.uint8)
    pixels[:, 2:4] = 255
    assert (np.asarray(crop_center_for_heat_map_drawing(Image.fromarray(pixels), 1.0)) == 255).all()


def test_patches_are_spread_bilinearly():
    spread = upsample_heat_map_patches(np.array([[0.0, 1.0]]), (8, 1), (0, 0, 2, 1))[0]
    # the middle of pixel x lies at (x + 0.5) / 4 - 0.5 patches, held inside the outer middles
    places = np.clip((np.arange(8) + 0.5) / 4 - 0.5, 0, 1)
    assert np.allclose(spread, places, atol=1e-6)


def test_the_colours_get_brighter_all_the_way():
    grey = viridis_heat_map_colours(np.linspace(0, 1, 101)[None])[0] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) > 0).all()
    assert np.array_equal(viridis_heat_map_colours(np.array([[0.0, 1.0]]))[0], VIRIDIS[[0, -1]])
