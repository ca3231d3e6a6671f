import copy
import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP
from open_clip.transformer import QuickGELU, ResidualAttentionBlock

from surelabel.encoders.towers.ladder_features import ladder_features
from surelabel.encoders.towers.last_blocks import LastBlocks
from surelabel.encoders.towers.patch_features import self_aware_output_of_block
from surelabel.encoders.towers.vit_towers import OpenClipVit
from surelabel.errors import ConfigError, InputError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/recover_match_towers.json").read_text())
TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 4}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}


def numbers(found):
    return torch.tensor(found, dtype=torch.float64)


def tower(**vision):
    torch.manual_seed(0)
    model = CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False)
    return model.visual.double()


def recorded():
    """The image tower of the released code, and what was put in."""
    vision = {"image_size": 12, "patch_size": 4, "width": 8, "head_width": 4, "layers": 3}
    model = CLIP(embed_dim=6, vision_cfg=vision, text_cfg=TEXT, quick_gelu=True).double().eval()
    found = GOLDEN["visual"]
    weights = {name: numbers(values) for name, values in found["weights"].items()}
    model.visual.load_state_dict(weights, strict=True)
    return model.visual.requires_grad_(False), numbers(found["pixels"])


def tokens(count=2, places=17, width=32):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, places, width, generator=generator, dtype=torch.float64)


def pixels(count=2):
    return torch.randn(
        count, 3, 32, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    )


@pytest.mark.parametrize("vision", [VIT, VIT | {"pool_type": "avg", "final_ln_after_pool": True}])
@pytest.mark.parametrize("depth", [1, 3, 4])
def test_without_prompts_the_last_blocks_end_in_the_towers_own_vector(depth, vision):
    visual = tower(**vision)
    upper, entering = (
        LastBlocks(visual, depth),
        ladder_features(visual, pixels(), first_block=0, depth=depth),
    )
    *_, (_, last) = upper.run_blocks(entering.layers[-depth - 1])
    expected = visual(pixels())
    torch.testing.assert_close(upper.pool(last), expected, atol=1e-12, rtol=0)
    if vision is VIT:
        assert torch.equal(upper.project(last[:, 0]), upper.pool(last))


def test_each_step_gives_self_aware_attention_and_tokens_of_its_block():
    visual = tower(**VIT)
    seen = tokens()
    found = list(LastBlocks(visual, 2).run_blocks(seen))
    assert len(found) == 2
    for block, (attended, after) in zip(visual.transformer.resblocks[-2:], found, strict=True):
        torch.testing.assert_close(
            attended,
            self_aware_output_of_block(OpenClipVit(visual), block, seen),
            atol=1e-12,
            rtol=0,
        )
        seen = block(seen)
        torch.testing.assert_close(after, seen, atol=1e-12, rtol=0)


def test_prompts_stand_behind_the_tokens_within_a_block_and_are_dropped_after_it():
    visual = tower(**VIT)
    seen, prompts = tokens(), torch.randn(2, 5, 32, dtype=torch.float64)
    for number, (attended, after) in enumerate(LastBlocks(visual, 2).run_blocks(seen, prompts)):
        block = visual.transformer.resblocks[2 + number]
        torch.testing.assert_close(
            attended,
            self_aware_output_of_block(OpenClipVit(visual), block, seen),
            atol=1e-12,
            rtol=0,
        )
        rows = [by_hand(block, torch.cat([row, prompts[number]]))[:17] for row in seen]
        seen = torch.stack(rows)
        torch.testing.assert_close(after, seen, atol=1e-12, rtol=0)


def by_hand(block, rows):
    """One block of ordinary attention for one image, token by token and head by head."""
    normed, width = block.ln_1(rows), rows.shape[1]
    mixed = F.linear(normed, block.attn.in_proj_weight, block.attn.in_proj_bias)
    query, key, value = mixed.split(width, dim=1)
    heads, size = block.attn.num_heads, width // block.attn.num_heads
    seen = torch.zeros_like(rows)
    for token in range(len(rows)):
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            weights = (key[:, part] @ query[token, part] / math.sqrt(size)).softmax(0)
            seen[token, part] = weights @ value[:, part]
    after = rows + block.attn.out_proj(seen)
    return after + block.mlp(block.ln_2(after))


def test_images_do_not_see_each_others_prompts_or_tokens():
    upper, prompts = LastBlocks(tower(**VIT), 2), torch.randn(2, 3, 32, dtype=torch.float64)
    *_, (_, both) = upper.run_blocks(tokens(), prompts)
    *_, (_, alone) = upper.run_blocks(tokens()[1:], prompts)
    torch.testing.assert_close(both[1:], alone, atol=1e-12, rtol=0)


def test_gradients_reach_prompts_and_what_is_added_but_not_the_tower():
    visual = tower(**VIT)
    upper = LastBlocks(visual, 2)
    prompts = torch.zeros(2, 3, 32, dtype=torch.float64, requires_grad=True)
    added = torch.zeros(2, 17, 32, dtype=torch.float64, requires_grad=True)
    (first, _), (second, last) = upper.run_blocks(tokens(), prompts)
    (upper.project(added + first + second).sum() + upper.pool(last).sum()).backward()
    assert all(layer.norm() > 0 for layer in prompts.grad)
    assert added.grad.norm() > 0
    assert all(p.grad is None and not p.requires_grad for p in visual.parameters())


def test_nothing_is_recorded_for_gradients_where_nothing_needs_them():
    upper = LastBlocks(tower(**VIT), 3)
    for attended, seen in upper.run_blocks(tokens()):
        assert not attended.requires_grad
        assert not seen.requires_grad
    assert not upper.pool(seen).requires_grad


def test_gradients_of_prompts_are_those_of_finite_differences():
    upper = LastBlocks(tower(**VIT), 2)

    def whole(prompts):
        *_, (_, last) = upper.run_blocks(tokens(count=1), prompts)
        return upper.pool(last)

    prompts = torch.randn(2, 1, 32, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(whole, prompts, fast_mode=True)


def test_its_weights_are_in_no_state_and_a_copy_is_itself():
    holder = torch.nn.Module()
    holder.upper = LastBlocks(tower(**VIT), 2)
    assert not holder.state_dict()
    assert copy.deepcopy(holder).upper is holder.upper
    assert (holder.upper.width, holder.upper.depth) == (32, 2)


def test_values_attend_to_values_as_in_the_released_code():
    found, visual = GOLDEN["self_aware"], tower(**VIT)
    block = ResidualAttentionBlock(8, 2).double()
    block.ln_1 = torch.nn.Identity()
    block.attn.load_state_dict({k: numbers(v) for k, v in found["weights"].items()})
    seen = numbers(found["tokens"])
    for given, expected in ((seen, "attended"), (seen[:, :4], "without_prompts")):
        got = self_aware_output_of_block(OpenClipVit(visual), block, given)
        torch.testing.assert_close(got, numbers(found[expected]), atol=1e-6, rtol=0)


def test_the_released_image_tower_with_prompts_gives_the_same_vectors():
    visual, images = recorded()
    assert isinstance(visual.transformer.resblocks[0].mlp.gelu, QuickGELU)
    entering = ladder_features(visual, images, first_block=0, depth=2).layers[-3]
    upper = LastBlocks(visual, 2)
    *_, (_, last) = upper.run_blocks(entering, numbers(GOLDEN["visual"]["prompts"]))
    expected = numbers(GOLDEN["visual"]["pooled"])
    torch.testing.assert_close(upper.pool(last), expected, atol=1e-6, rtol=0)


def test_the_released_frozen_regions_are_the_sum_of_what_enters_and_self_aware_attention():
    visual, images = recorded()
    upper, low = LastBlocks(visual, 1), ladder_features(visual, images, first_block=0, depth=1)
    total = (
        ladder_features(visual, images, first_block=0, depth=3).layers[-4][:, 1:]
        + low.self_aware_sum
    )
    *_, (attended, last) = upper.run_blocks(low.layers[-2])
    local = upper.project(total + attended[:, 1:])
    expected = GOLDEN["visual"]
    torch.testing.assert_close(local, numbers(expected["frozen_local"])[:, 1:], atol=1e-6, rtol=0)
    torch.testing.assert_close(
        upper.pool(last), numbers(expected["frozen_pooled"]), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("depth", [0, 5, -1, 1.0])
def test_a_number_of_blocks_that_the_tower_does_not_have_is_refused(depth):
    with pytest.raises(ConfigError, match=r"from 1 to 4 for this tower; got"):
        LastBlocks(tower(**VIT), depth)


def test_a_tower_without_standard_attention_blocks_is_refused():
    custom = VIT | {"block_type": "custom"}
    for vision, kind in ((RESNET, "ModifiedResNet"), (custom, "Vision")):
        with pytest.raises(ConfigError, match=rf"a ViT with .*; got {kind}.*\. Use tiny-vit"):
            LastBlocks(tower(**vision), 1)


@pytest.mark.parametrize("pooling", [{"pool_type": "avg"}, {"attentional_pool": True}])
def test_a_tower_that_pools_its_patches_has_the_residual_in_place_of_the_sum(pooling):
    visual = tower(**VIT, **pooling, attn_pooler_heads=4)
    features = ladder_features(visual, pixels(), first_block=0, depth=2)
    assert torch.equal(features.self_aware_sum, features.layers[-3][:, 1:])
    *_, (_, last) = LastBlocks(visual, 2).run_blocks(features.layers[-3])
    expected = visual(pixels())
    torch.testing.assert_close(LastBlocks(visual, 2).pool(last), expected, atol=1e-12, rtol=0)


def test_prompts_and_tokens_of_another_shape_are_refused():
    upper = LastBlocks(tower(**VIT), 2)
    with pytest.raises(InputError, match=r"\(2, m, 32\).* got \(3, 4, 32\)"):
        list(upper.run_blocks(tokens(), torch.zeros(3, 4, 32)))
    with pytest.raises(InputError, match=r"tokens must have axes \(n, p, w\)"):
        list(upper.run_blocks(tokens()[0]))
