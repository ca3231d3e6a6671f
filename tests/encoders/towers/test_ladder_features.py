import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP

from surelabel.encoders.towers.ladder_features import ladder_features
from surelabel.encoders.towers.patch_features import self_aware_output_of_block
from surelabel.encoders.towers.vit_towers import OpenClipVit
from surelabel.errors import ConfigError

TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 6}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}
OBLONG = VIT | {"image_size": (16, 32)}


def tower(**vision):
    torch.manual_seed(0)
    model = CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False)
    return model.visual.double()


def images(down=32, across=32):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, 3, down, across, generator=generator, dtype=torch.float64)


def entering(visual, pixels):
    """What enters each block of a tower as it runs, and what leaves the last."""
    found = []
    hooks = [
        block.register_forward_hook(lambda _, inputs, output: found.extend([inputs[0], output]))
        for block in visual.transformer.resblocks
    ]
    visual(pixels)
    for hook in hooks:
        hook.remove()
    return [*found[::2], found[-1]]


@pytest.mark.parametrize("depth", [1, 3, 6])
@pytest.mark.parametrize("first", [0, 2, 5])
def test_it_keeps_what_enters_the_last_blocks_and_adds_up_attention_below_them(first, depth):
    visual, pixels = tower(**VIT), images()
    seen, layers = (
        ladder_features(visual, pixels, first_block=first, depth=depth),
        entering(visual, images()),
    )
    assert list(seen.layers) == [-depth - 1]
    torch.testing.assert_close(seen.layers[-depth - 1], layers[6 - depth], atol=1e-12, rtol=0)
    expected = torch.zeros(2, 16, 32, dtype=torch.float64)
    for number in range(first, 6 - depth):
        block = visual.transformer.resblocks[number]
        expected = (
            expected + self_aware_output_of_block(OpenClipVit(visual), block, layers[number])[:, 1:]
        )
    torch.testing.assert_close(seen.self_aware_sum, expected, atol=1e-12, rtol=0)
    assert bool(seen.self_aware_sum.any()) == (first < 6 - depth)


@pytest.mark.parametrize("vision", [VIT, VIT | {"pool_type": "avg"}])
def test_the_pooled_vector_is_the_encoders_own(vision):
    visual, pixels = tower(**vision), images()
    expected = F.normalize(visual(pixels), dim=-1)
    for depth in (1, 6):
        pooled = ladder_features(visual, pixels, first_block=0, depth=depth).pooled
        torch.testing.assert_close(pooled, expected, atol=1e-12, rtol=0)


def test_a_grid_that_is_no_square_keeps_its_sides():
    seen = ladder_features(tower(**OBLONG), images(16, 32), first_block=0, depth=2)
    assert seen.grid == (2, 4)
    assert seen.layers[-3].shape == (2, 9, 32)
    assert seen.self_aware_sum.shape == (2, 8, 32)


def test_blocks_that_the_tower_does_not_have_are_refused():
    visual = tower(**VIT)
    for depth in (0, 7):
        with pytest.raises(ConfigError, match=rf"depth must be .* from 1 to 6.* got {depth}"):
            ladder_features(visual, images(), first_block=0, depth=depth)
    for first in (-1, 6):
        with pytest.raises(ConfigError, match=rf"first_block must be .* from 0 to 5.* got {first}"):
            ladder_features(visual, images(), first_block=first, depth=3)
    with pytest.raises(ConfigError, match=r"got ModifiedResNet\. Use tiny-vit"):
        ladder_features(tower(**RESNET), images(64, 64), first_block=0, depth=1)
