import copy

import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP

from surelabel.encoders.towers.patch_features import plain_patch_features, self_aware_patch_features
from surelabel.errors import ConfigError

TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 3}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}


def tower(**vision):
    torch.manual_seed(0)
    model = CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if (
            tensor.ndim == 1 and tensor.is_floating_point()
        ):  # nothing that starts as 0 or 1 stays so
            tensor.copy_(
                torch.rand_like(tensor) + 0.5
                if "var" in name
                else torch.randn_like(tensor) / 3 + 0.5
            )
    return model.visual


def images(side, count=2):
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("vision", "grid"), [(VIT, (4, 4)), (RESNET, (2, 2))])
@pytest.mark.parametrize("dense", [plain_patch_features, self_aware_patch_features])
def test_the_pooled_vector_is_the_encoders_own(dense, vision, grid):
    visual, pixels = tower(**vision), images(vision["image_size"])
    seen = dense(visual, pixels)
    expected = F.normalize(visual(pixels), dim=-1)
    torch.testing.assert_close(seen.pooled, expected, atol=1e-5, rtol=0)
    assert seen.grid == grid
    assert seen.patches.shape == (2, grid[0] * grid[1], 24)


def test_plain_patches_of_a_vit_are_what_pooling_their_mean_would_average():
    visual = tower(**VIT, pool_type="avg")
    pixels = images(32)
    tokens = visual.ln_post(visual.transformer(visual._embeds(pixels)))
    patches = F.normalize(tokens[:, 1:] @ visual.proj, dim=-1)
    torch.testing.assert_close(
        plain_patch_features(visual, pixels).patches, patches, atol=1e-5, rtol=0
    )
    pooled = F.normalize((tokens[:, 1:] @ visual.proj).mean(dim=1), dim=-1)
    torch.testing.assert_close(
        plain_patch_features(visual, pixels).pooled, pooled, atol=1e-5, rtol=0
    )


def test_self_aware_patches_are_what_a_last_attention_of_values_adds():
    visual, pixels = tower(**VIT), images(32)
    changed = copy.deepcopy(visual)
    block = changed.transformer.resblocks[-1]
    weight, bias = block.attn.in_proj_weight.chunk(3), block.attn.in_proj_bias.chunk(3)
    block.attn.in_proj_weight.copy_(torch.cat([weight[2]] * 3))
    block.attn.in_proj_bias.copy_(torch.cat([bias[2]] * 3))
    block.mlp.c_proj.weight.zero_()
    block.mlp.c_proj.bias.zero_()
    added = []
    block.register_forward_hook(lambda _, inputs, output: added.append(output - inputs[0]))
    changed(pixels)
    expected = F.normalize(visual.ln_post(added[0])[:, 1:] @ visual.proj, dim=-1)
    ours = self_aware_patch_features(visual, pixels).patches
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=0)
    assert not torch.allclose(ours, plain_patch_features(visual, pixels).patches, atol=1e-2)


def test_pooling_of_a_resnet_is_a_weighted_mean_of_its_plain_values_head_by_head():
    visual, pixels = tower(**RESNET), images(64, count=1)
    pool = visual.attnpool
    last = visual.layer4(visual.layer3(visual.layer2(visual.layer1(visual.stem(pixels)))))[0]
    places = [last[:, y, x] for y in range(2) for x in range(2)]
    places = [sum(places) / 4, *places]
    places = [p + pool.positional_embedding[i] for i, p in enumerate(places)]
    head = len(places[0]) // pool.num_heads
    pooled = torch.zeros(len(places[0]))
    for start in range(0, len(pooled), head):
        part = slice(start, start + head)
        query = pool.q_proj(places[0])[part]
        keys = [pool.k_proj(p)[part] for p in places]
        weights = torch.stack([query @ key / head**0.5 for key in keys]).softmax(0)
        for weight, place in zip(weights, places, strict=True):
            pooled[part] += weight * pool.v_proj(place)[part]
    expected = F.normalize(pool.c_proj(pooled), dim=0)
    seen = plain_patch_features(visual, pixels)
    torch.testing.assert_close(seen.pooled[0], expected, atol=1e-5, rtol=0)
    values = torch.stack([F.normalize(pool.c_proj(pool.v_proj(p)), dim=0) for p in places[1:]])
    torch.testing.assert_close(seen.patches[0], values, atol=1e-5, rtol=0)


def test_self_aware_places_of_a_resnet_are_its_pooling_with_values_as_queries_and_keys():
    visual, pixels = tower(**RESNET), images(64)
    pool = visual.attnpool
    for projection in (pool.q_proj, pool.k_proj):
        projection.weight.copy_(pool.v_proj.weight)
        projection.bias.copy_(pool.v_proj.bias)
    last = visual.forward_intermediates(pixels, indices=1)["image_intermediates"][-1]
    places = last.flatten(2).permute(2, 0, 1)
    places = torch.cat([places.mean(0, keepdim=True), places]) + pool.positional_embedding[:, None]
    bias = torch.cat([pool.q_proj.bias, pool.k_proj.bias, pool.v_proj.bias])
    attended, _ = F.multi_head_attention_forward(
        places, places, places, places.shape[-1], pool.num_heads, None, bias,
        None, None, False, 0.0, pool.c_proj.weight, pool.c_proj.bias,
        training=False, use_separate_proj_weight=True,
        q_proj_weight=pool.q_proj.weight, k_proj_weight=pool.k_proj.weight,
        v_proj_weight=pool.v_proj.weight,
    )  # fmt: skip
    expected = F.normalize(attended[1:].transpose(0, 1), dim=-1)
    torch.testing.assert_close(
        self_aware_patch_features(visual, pixels).patches, expected, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    ("trunk", "side", "grid"),
    [
        ({"timm_model_name": "test_vit", "timm_pool": "avg", "timm_proj": "linear"}, 160, (10, 10)),
        ({"timm_model_name": "test_vit", "timm_pool": "token", "timm_proj": None}, 160, (10, 10)),
        ({"timm_model_name": "test_convnext", "timm_pool": "", "timm_proj": "linear"}, 160, (5, 5)),
    ],
)
def test_places_of_timm_trunks_go_alone_through_their_own_pooling(trunk, side, grid):
    visual, pixels = tower(**trunk, image_size=side), images(side)
    seen = plain_patch_features(visual, pixels)
    torch.testing.assert_close(seen.pooled, F.normalize(visual(pixels), dim=-1), atol=1e-5, rtol=0)
    assert seen.grid == grid
    assert seen.patches.shape == (2, grid[0] * grid[1], 24)
    torch.testing.assert_close(seen.patches.norm(dim=-1), torch.ones(2, grid[0] * grid[1]))


def test_a_patch_of_a_trunk_with_attention_pooling_is_pooled_alone():
    visual = tower(timm_model_name="test_vit", timm_pool="map", timm_proj="none", image_size=160)
    pool, pixels = visual.trunk.attn_pool, images(160)
    tokens = visual.trunk.forward_features(pixels)[:, visual.trunk.num_prefix_tokens :]
    values = pool.kv(tokens).chunk(2, dim=-1)[1]  # attention to one token returns its value
    attended = pool.proj(values)
    expected = F.normalize(attended + pool.mlp(pool.norm(attended)), dim=-1)
    seen = plain_patch_features(visual, pixels)
    torch.testing.assert_close(seen.patches, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(seen.pooled, F.normalize(visual(pixels), dim=-1), atol=1e-5, rtol=0)


def test_a_place_of_a_convnext_is_its_own_norm_and_projection():
    visual = tower(
        timm_model_name="test_convnext", timm_pool="", timm_proj="linear", image_size=160
    )
    norm, projection = visual.trunk.head.norm, visual.head.proj
    last = visual.trunk.forward_features(images(160))
    vectors = plain_patch_features(visual, images(160)).patches
    for image, y, x in [(0, 0, 0), (0, 3, 1), (1, 4, 4)]:
        place = last[image, :, y, x]
        centred = place - place.mean()
        even = centred / (centred.square().mean() + norm.eps).sqrt()
        expected = F.normalize(projection.weight @ (even * norm.weight + norm.bias), dim=0)
        torch.testing.assert_close(vectors[image, 5 * y + x], expected, atol=1e-5, rtol=0)


def test_the_mean_of_the_places_of_a_mean_pooled_trunk_is_its_pooled_vector():
    visual = tower(
        timm_model_name="test_resnet", timm_pool="avg", timm_proj="linear", image_size=160
    )
    trunk, pixels = visual.trunk, images(160)
    last = trunk.forward_features(pixels)
    places = F.normalize(visual.head(last.flatten(2).transpose(1, 2)), dim=-1)
    torch.testing.assert_close(
        plain_patch_features(visual, pixels).patches, places, atol=1e-5, rtol=0
    )


def test_a_patch_is_pooled_alone_by_learned_queries():
    visual, pixels = tower(**VIT, attentional_pool=True, attn_pooler_heads=4), images(32)
    tokens = visual.transformer(visual._embeds(pixels))[:, 1:]
    alone = [visual._pool(tokens[:, i : i + 1])[0] @ visual.proj for i in range(16)]
    seen = plain_patch_features(visual, pixels)
    expected = F.normalize(torch.stack(alone, dim=1), dim=-1)
    torch.testing.assert_close(seen.patches, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(seen.pooled, F.normalize(visual(pixels), dim=-1), atol=1e-5, rtol=0)


def test_a_tower_without_patches_in_the_joint_space_says_so():
    rotated = tower(
        timm_model_name="test_byobnet", timm_pool="rot_attn", timm_proj="", image_size=160
    )
    for dense in (plain_patch_features, self_aware_patch_features):
        with pytest.raises(ConfigError, match="no patch vectors"):
            dense(rotated, images(160))
        with pytest.raises(ConfigError, match="got Linear"):
            dense(torch.nn.Linear(2, 2), images(32))
        two_poolings = tower(**VIT, attentional_pool="cascade", attn_pooler_heads=4)
        with pytest.raises(ConfigError, match=r"one attentional pooler; got .*\. Use a"):
            dense(two_poolings, images(32))
