import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms

from surelabel.errors import InputError
from surelabel.views import crop_and_resize_box, random_crop_boxes


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("size", [(100, 80), (37, 91), (640, 480), (224, 224)])
@pytest.mark.parametrize("seed", range(10))
def test_boxes_are_those_of_torchvision_for_the_same_random_numbers(size, seed):
    blank = torch.zeros(3, size[1], size[0])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        expected, flips = [], []
        for _ in range(3):
            expected.append(
                transforms.RandomResizedCrop.get_params(blank, [0.1, 0.2], [3 / 4, 4 / 3])
            )
            flips.append(bool(torch.rand(1) < 0.5))
    boxes = random_crop_boxes(size, 3, generator=seeded(seed))
    assert [(b.top, b.left, b.height, b.width) for b in boxes] == expected
    assert [b.flipped for b in boxes] == flips


def test_what_is_seen_is_what_torchvision_shows_pixel_by_pixel():
    noise = np.random.default_rng(0).integers(0, 256, (80, 100, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    theirs = transforms.Compose(
        [
            transforms.RandomResizedCrop(
                48, scale=(0.1, 0.2), interpolation=transforms.InterpolationMode.BICUBIC
            ),
            transforms.RandomHorizontalFlip(),
        ]
    )
    for seed in range(8):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            expected = np.asarray(theirs(image))
        (box,) = random_crop_boxes(image.size, 1, generator=seeded(seed))
        np.testing.assert_array_equal(
            np.asarray(crop_and_resize_box(image, box, size=(48, 48))), expected
        )


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 2**31))
def test_every_box_lies_inside_and_holds_something(width, height, seed):
    for box in random_crop_boxes((width, height), 3, generator=seeded(seed)):
        assert 0 <= box.left < box.left + box.width <= width
        assert 0 <= box.top < box.top + box.height <= height


def test_area_shape_place_and_side_are_spread_as_asked():
    boxes = random_crop_boxes((1000, 800), 2000, generator=seeded(0))
    areas = np.array([b.width * b.height / 800_000 for b in boxes])
    shapes = np.log([b.width / b.height for b in boxes])
    places = np.array([b.left / (1000 - b.width) for b in boxes])
    assert areas.min() > 0.099
    assert areas.max() < 0.201
    assert areas.mean() == pytest.approx(0.15, abs=0.003)
    assert np.abs(shapes).max() < math.log(4 / 3) + 0.01
    assert shapes.mean() == pytest.approx(0, abs=0.015)
    assert places.mean() == pytest.approx(0.5, abs=0.03)
    assert np.mean([b.flipped for b in boxes]) == pytest.approx(0.5, abs=0.04)


def test_in_a_very_oblong_image_crops_still_move():
    boxes = random_crop_boxes((1000, 40), 20, generator=seeded(0))
    assert {b.height for b in boxes} == {40}
    assert len({b.left for b in boxes}) > 10


def test_an_image_of_one_pixel_is_its_own_crop():
    boxes = random_crop_boxes((1, 1), 5, generator=seeded(0))
    assert {(b.left, b.top, b.width, b.height) for b in boxes} == {(0, 0, 1, 1)}


def test_the_same_seed_draws_the_same_and_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    first = random_crop_boxes((50, 60), 4, generator=seeded(3))
    assert first == random_crop_boxes((50, 60), 4, generator=seeded(3))
    assert first != random_crop_boxes((50, 60), 4, generator=seeded(4))
    assert torch.equal(before, torch.get_rng_state())


def test_flip_never_and_always():
    assert not any(b.flipped for b in random_crop_boxes((9, 9), 50, generator=seeded(0), flip=0))
    assert all(b.flipped for b in random_crop_boxes((9, 9), 50, generator=seeded(0), flip=1))


@pytest.mark.parametrize(
    ("size", "count", "settings", "complaint"),
    [
        ((0, 5), 1, {}, r"size must be a width and a height of 1 or more; got \(0, 5\)"),
        ((5, 5), -1, {}, r"count must be 0 or more; got -1"),
        ((5, 5), 1, {"area": (0.3, 0.2)}, r"area must be two fractions in \(0, 1\]"),
        ((5, 5), 1, {"area": (0.5, 1.2)}, r"area must be two fractions in \(0, 1\]"),
        ((5, 5), 1, {"aspect": (0.0, 1.0)}, "aspect must be two ratios above 0"),
        ((5, 5), 1, {"flip": 1.5}, r"flip must be a probability in \[0, 1\]; got 1\.5"),
    ],
)
def test_what_cannot_be_drawn_is_refused(size, count, settings, complaint):
    with pytest.raises(InputError, match=complaint):
        random_crop_boxes(size, count, generator=seeded(0), **settings)
