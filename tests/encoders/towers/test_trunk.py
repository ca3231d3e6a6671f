import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP

from surelabel.encoders import load_encoder
from surelabel.encoders.towers.trunk import trunk_features
from surelabel.errors import ConfigError

TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 3}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}


def tower(**vision):
    torch.manual_seed(0)
    model = CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False)
    return model.visual


def images(side, count=2):
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(1))


def heard(module, visual, pixels):
    """What a part of a tower gives on the way."""
    found = []
    handle = module.register_forward_hook(lambda _, inputs, output: found.append(output))
    visual(pixels)
    handle.remove()
    return found[0]


def test_the_trunk_of_a_resnet_is_the_map_that_enters_its_pooling():
    visual, pixels = tower(**RESNET), images(64)
    seen, last = trunk_features(visual, pixels), heard(visual.layer4, visual, pixels)
    assert seen.grid == (2, 2)
    for y in range(2):
        for x in range(2):
            torch.testing.assert_close(seen.layers[-1][:, 2 * y + x], last[:, :, y, x])


def test_the_trunk_of_a_vit_is_its_tokens_after_norm_and_projection_of_any_length():
    visual, pixels = tower(**VIT), images(32)
    last = heard(visual.transformer, visual, pixels)
    seen = trunk_features(visual, pixels)
    for token in range(16):
        expected = visual.ln_post(last[:, 1 + token]) @ visual.proj
        torch.testing.assert_close(seen.layers[-1][:, token], expected, atol=1e-5, rtol=0)
    assert seen.grid == (4, 4)
    assert not torch.allclose(seen.layers[-1].norm(dim=-1), torch.tensor(1.0), atol=0.1)


@pytest.mark.parametrize(
    ("vision", "grid"),
    [
        (VIT, (4, 4)),
        (RESNET, (2, 2)),
        ({"timm_model_name": "test_vit", "timm_pool": "avg", "image_size": 160}, (10, 10)),
        ({"timm_model_name": "test_convnext", "timm_pool": "", "image_size": 160}, (5, 5)),
    ],
)
def test_the_pooled_vector_is_the_encoders_own(vision, grid):
    visual, pixels = tower(**vision), images(vision["image_size"])
    seen = trunk_features(visual, pixels)
    torch.testing.assert_close(seen.pooled, F.normalize(visual(pixels), dim=-1), atol=1e-5, rtol=0)
    assert seen.grid == grid
    assert seen.layers[-1].shape[:2] == (2, grid[0] * grid[1])


@pytest.mark.parametrize(("name", "grid"), [("test_vit", (10, 10)), ("test_resnet", (5, 5))])
def test_a_timm_encoder_has_the_trunk_of_its_network(name, grid):
    encoder = load_encoder(f"timm:{name}", pretrained=False)
    pixels = images(160)
    seen, last = encoder.encode_trunk_tokens(pixels), encoder.model.forward_features(pixels)
    assert seen.grid == grid
    assert encoder.trunk_width == encoder.model.num_features == seen.layers[-1].shape[-1]
    torch.testing.assert_close(seen.pooled, encoder.encode_images(pixels).pooled)
    third = last[:, :, 0, 3] if last.ndim == 4 else last[:, encoder.model.num_prefix_tokens + 3]
    torch.testing.assert_close(seen.layers[-1][:, 3], third)
    assert encoder.supports("trunk")
    assert not encoder.supports("patches")


def test_a_tower_without_tokens_says_so():
    with pytest.raises(
        ConfigError, match=r"a feature map or a grid of patch tokens; Linear has neither"
    ):
        trunk_features(torch.nn.Linear(2, 2), images(32))


def test_a_feature_map_with_channels_last_has_the_tokens_of_its_positions():
    encoder = load_encoder("timm:test_mambaout", pretrained=False)
    pixels = torch.randn(2, 3, *encoder.preprocess_cfg["size"])
    last = encoder.model.forward_features(pixels)
    seen = encoder.encode_trunk_tokens(pixels)
    assert last.shape == (2, *seen.grid, encoder.trunk_width)
    torch.testing.assert_close(seen.layers[-1], last.flatten(1, 2))


@pytest.mark.parametrize("width", [24, 32])  # equal to the dimension of the joint space or not
def test_tokens_of_a_tower_that_pools_with_learned_queries_are_pooled_alone(width):
    visual = tower(**{**VIT, "width": width, "attentional_pool": True, "attn_pooler_heads": 2})
    seen = trunk_features(visual, images(32))
    outputs = visual.transformer(visual._embeds(images(32)))
    alone = visual._pool(outputs[:, 3:4])[0] @ visual.proj
    torch.testing.assert_close(seen.layers[-1][:, 2], alone)
    torch.testing.assert_close(seen.pooled, F.normalize(visual(images(32)), dim=-1))
