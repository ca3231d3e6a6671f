"""What every domain must do, and what each does to simple images."""

import numpy as np
import pytest
import torch

from surelabel.data.domains import (
    DOMAINS,
    blur_domain,
    night_domain,
    noise_domain,
    photo_domain,
    sketch_domain,
)
from surelabel.errors import InputError

SEEDS = [11, 12, 13, 14]
EVERY = pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))


@pytest.fixture
def pixels():
    return torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def flat(value, count=1):
    return torch.full((count, 3, 64, 64), float(value))


@EVERY
def test_shape_type_and_range_stay(domain, pixels):
    made = domain(pixels, SEEDS)
    assert made.shape == pixels.shape
    assert made.dtype == torch.float32
    assert 0 <= made.min() <= made.max() <= 1


@EVERY
def test_the_given_images_are_not_changed(domain, pixels):
    before = pixels.clone()
    domain(pixels, SEEDS)
    assert torch.equal(pixels, before)


@EVERY
def test_the_same_seeds_give_the_same_images(domain, pixels):
    assert torch.equal(domain(pixels, SEEDS), domain(pixels, np.array(SEEDS)))


@EVERY
def test_an_image_does_not_depend_on_its_batch(domain, pixels):
    together = domain(pixels, SEEDS)
    for i in (3, 0):
        assert torch.equal(domain(pixels[i : i + 1], SEEDS[i : i + 1])[0], together[i])


@pytest.mark.parametrize("domain", [sketch_domain, night_domain, blur_domain, noise_domain])
def test_another_seed_gives_another_image(domain, pixels):
    assert not torch.equal(domain(pixels, SEEDS), domain(pixels, [1, 2, 3, 4]))


@pytest.mark.parametrize("domain", [sketch_domain, night_domain, blur_domain, noise_domain])
def test_one_seed_an_image_is_needed(domain, pixels):
    with pytest.raises(InputError, match=r"pixels \(n c h w\) has shape \(4, 3, 32, 32\); seeds"):
        domain(pixels, [1, 2, 3])


def test_a_photo_is_left_as_it_is(pixels):
    assert torch.equal(photo_domain(pixels, SEEDS), pixels)


def test_a_sketch_of_nothing_is_bright_paper_and_an_edge_is_a_dark_line():
    half = flat(0.2)
    half[..., 32:] = 0.8
    empty, edge = sketch_domain(torch.cat([flat(0.4), half]), [1, 1])
    assert empty.min() > 0.7
    assert edge[..., 31:33].mean() < 0.65
    assert edge[..., :24].mean() > 0.7
    assert edge[..., 40:].mean() > 0.7


def test_a_sketch_has_no_colour_of_its_image():
    red = flat(0)
    red[:, 0] = 1
    red[..., 32:] = 0.5
    drawn = sketch_domain(red, [1])[0]
    assert (drawn.amax(0) - drawn.amin(0)).max() < 0.07  # the tint of the paper


def test_at_night_it_is_dark_and_blue():
    dark = night_domain(flat(0.8, 20), range(20)).mean(dim=(2, 3))
    assert (dark.mean(dim=1) < 0.45).all()
    assert (dark[:, 2] > dark[:, 1]).all()
    assert (dark[:, 1] > dark[:, 0]).all()


def test_at_night_colours_fade():
    red = flat(0.1)
    red[:, 0] = 0.7
    means = night_domain(red, [1])[0].mean(dim=(1, 2))
    assert means[0] / means[1] < 0.7 * (0.7 / 0.1)


def test_blur_keeps_the_mean_and_softens_edges(pixels):
    soft = blur_domain(pixels, SEEDS)
    assert torch.allclose(soft.mean(dim=(2, 3)), pixels.mean(dim=(2, 3)), atol=0.02)
    assert (soft.std(dim=(2, 3)) < 0.8 * pixels.std(dim=(2, 3))).all()


def test_blur_grows_with_the_side_of_the_image():
    def width(side):
        line = torch.zeros(1, 3, side, side)
        line[..., side // 2] = 1
        profile = blur_domain(line, [5])[0, 0, side // 2].double().numpy()
        place = np.arange(side) - side // 2
        return np.sqrt((profile * place**2).sum() / profile.sum())

    assert width(256) == pytest.approx(2 * width(128), rel=0.05)


def test_noise_has_no_bias_and_the_stated_strength():
    disturbed = noise_domain(flat(0.5, 30), range(30))
    spread = disturbed.std(dim=(1, 2, 3))
    assert torch.allclose(disturbed.mean(dim=(1, 2, 3)), torch.tensor(0.5), atol=0.01)
    assert spread.min() > 0.11
    assert spread.max() < 0.3
    assert spread.max() - spread.min() > 0.08
