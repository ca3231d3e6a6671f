import pytest
import torch
from open_clip.model import CLIP

from surelabel.encoders.towers.vit_towers import TimmVit, vit_block_inputs, vit_tower

TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}


def visual(**vision):
    torch.manual_seed(0)
    return CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False).visual


@pytest.mark.parametrize(
    ("pool", "projection", "pools_patches"),
    [("token", "linear", False), ("avg", "linear", True), ("map", "none", True)],
)
def test_a_vit_of_timm_runs_block_by_block(pool, projection, pools_patches):
    tower_of_clip = visual(
        timm_model_name="test_vit", timm_pool=pool, timm_proj=projection, image_size=160
    )
    tower, pixels = vit_tower(tower_of_clip), torch.randn(2, 3, 160, 160)
    assert isinstance(tower, TimmVit)
    assert (tower.grid, tower.n_prefix, tower.pools_patches) == ((10, 10), 1, pools_patches)
    tokens = tower.embed(pixels)
    *inputs, outputs = vit_block_inputs(tower, tokens, count=len(tower.blocks))
    assert torch.equal(inputs[0], tokens)
    torch.testing.assert_close(tower.pool(outputs), tower_of_clip(pixels))
    for row in (0, tower.n_prefix):  # a token that is pooled with copies of it
        copies = outputs[:, row : row + 1].expand_as(outputs)
        torch.testing.assert_close(tower.project(outputs[:, row]), tower.pool(copies))


def test_towers_without_known_blocks_are_no_vits():
    assert vit_tower(visual(timm_model_name="test_convnext", image_size=64)) is None
    assert vit_tower(visual(timm_model_name="test_vit", image_size=32)) is None  # another grid
    custom = {"block_type": "custom", "layers": 1, "width": 32, "patch_size": 8, "image_size": 16}
    assert vit_tower(visual(**custom, head_width=8)) is None
    assert vit_tower(torch.nn.Linear(2, 2)) is None
