import pytest
import torch
from open_clip.model import CLIP

from surelabel.encoders.towers.patch_attention import patch_attention_features
from surelabel.encoders.towers.patch_features import plain_patch_features, self_aware_patch_features
from surelabel.errors import ConfigError

TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 6}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}


def tower(**vision):
    torch.manual_seed(0)
    model = CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False)
    for parameter in model.visual.parameters():
        parameter.mul_(3)  # so that attention is far from even
    return model.visual


def images(side, count=2):
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(1))


def without_first(weights):
    """Attention between patches, row by row made whole again."""
    rows = [[row[1:] / row[1:].sum() for row in image[1:]] for image in weights]
    return torch.stack([torch.stack(image) for image in rows])


@pytest.mark.parametrize(("layers", "late"), [(6, [4, 5]), (3, [2]), (2, [1]), (7, [5, 6])])
def test_attention_of_a_vit_compares_the_values_of_its_late_blocks(layers, late):
    visual, pixels = tower(**VIT | {"layers": layers}), images(32)
    weights = []
    for index in late:
        block = visual.transformer.resblocks[index]

        def weigh(attention, inputs, named, output):
            """Values stand third in what the block projects its tokens to."""
            values = (inputs[0] @ attention.in_proj_weight.T + attention.in_proj_bias)[..., 64:]
            heads = [values[..., start : start + 8] for start in range(0, 32, 8)]
            found = [(v @ v.transpose(1, 2) / 8**0.5).softmax(-1) for v in heads]
            weights.append(sum(found) / 4)

        handle = block.attn.register_forward_hook(weigh, with_kwargs=True)
        visual(pixels)
        handle.remove()
    expected = without_first(sum(weights) / len(late))
    torch.testing.assert_close(
        patch_attention_features(visual, pixels).attention, expected, atol=1e-5, rtol=0
    )
    assert expected.std() > 0.01


def test_attention_of_a_resnet_compares_the_values_of_its_pooling():
    visual, pixels = tower(**RESNET), images(64, count=1)
    pool = visual.attnpool
    last = visual.forward_intermediates(pixels, indices=1)["image_intermediates"][-1][0]
    places = [last[:, y, x] for y in range(2) for x in range(2)]
    places = [sum(places) / 4, *places]
    values = [pool.v_proj(p + pool.positional_embedding[i]) for i, p in enumerate(places)]
    head = len(values[0]) // pool.num_heads
    weights = torch.zeros(5, 5)
    for start in range(0, len(values[0]), head):
        part = slice(start, start + head)
        for i, asking in enumerate(values):
            cosines = torch.stack([asking[part] @ v[part] / head**0.5 for v in values])
            weights[i] += cosines.softmax(0) / pool.num_heads
    expected = without_first(weights[None])
    torch.testing.assert_close(
        patch_attention_features(visual, pixels).attention, expected, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("vision", [VIT, RESNET])
def test_all_else_is_as_without_attention_and_rows_sum_to_one(vision):
    visual, pixels = tower(**vision), images(vision["image_size"])
    seen, plain = (
        patch_attention_features(visual, pixels),
        self_aware_patch_features(visual, pixels),
    )
    torch.testing.assert_close(seen.pooled, plain.pooled)
    torch.testing.assert_close(seen.patches, plain.patches)
    assert seen.grid == plain.grid
    assert (seen.attention >= 0).all()
    torch.testing.assert_close(seen.attention.sum(-1), torch.ones(seen.attention.shape[:2]))


def test_patches_without_attention_are_weighted_by_their_similarity():
    visual = tower(timm_model_name="test_convnext", timm_pool="", timm_proj="linear", image_size=96)
    seen, plain = (
        patch_attention_features(visual, images(96)),
        plain_patch_features(visual, images(96)),
    )
    torch.testing.assert_close(seen.patches, plain.patches)
    image = plain.patches[0] - plain.patches[0].mean(dim=0)
    for row, vector in zip(seen.attention[0], image, strict=True):
        cosines = torch.stack([vector @ v / (vector.norm() * v.norm()) for v in image])
        torch.testing.assert_close(row, (10 * cosines).softmax(dim=0), atol=1e-5, rtol=0)


def test_a_tower_without_patches_says_so():
    rotated = tower(
        timm_model_name="test_byobnet", timm_pool="rot_attn", timm_proj="", image_size=160
    )
    with pytest.raises(ConfigError, match="no patch vectors"):
        patch_attention_features(rotated, images(160))
