import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from open_clip.model import CLIP, resize_pos_embed

from surelabel.encoders.towers.position_embeddings import (
    interpolate_position_embeddings,
    model_with_resized_position_embeddings,
)
from surelabel.errors import ConfigError

TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2}
RESNET = {"image_size": 96, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}


def model(**vision):
    torch.manual_seed(0)
    return CLIP(embed_dim=24, vision_cfg=vision, text_cfg=TEXT).eval().requires_grad_(False)


@given(st.integers(1, 5), st.integers(1, 5))
def test_the_same_grid_gives_the_same_table(down, across):
    table = torch.randn(1 + down * across, 3)
    torch.testing.assert_close(
        interpolate_position_embeddings(table, (down, across), (down, across)), table
    )


@given(st.integers(2, 5), st.integers(2, 9), st.integers(2, 9))
def test_the_class_row_stays_and_even_tables_stay_even(side, down, across):
    table = torch.ones(1 + side**2, 2)
    table[0] = 7.0
    new = interpolate_position_embeddings(table, (side, side), (down, across))
    assert new.shape == (1 + down * across, 2)
    torch.testing.assert_close(new[0], torch.full((2,), 7.0))
    torch.testing.assert_close(new[1:], torch.ones(down * across, 2))


def test_rows_run_across_first():
    rows = torch.arange(4.0).repeat_interleave(4)  # 0 0 0 0 1 1 1 1 …: grows downwards
    table = torch.cat([torch.zeros(1), rows])[:, None]
    new = interpolate_position_embeddings(table, (4, 4), (8, 2))[1:, 0].reshape(8, 2)
    assert (new[:, 0] == new[:, 1]).all()
    assert (new.diff(dim=0)[1:-1] > 0).all()


def test_a_vit_is_resized_as_open_clip_does_it():
    small, large = model(**VIT), model(**{**VIT, "image_size": 64})
    state = small.state_dict()
    resize_pos_embed(state, large)
    large.load_state_dict(state)
    pixels = torch.randn(2, 3, 64, 64)
    ours = model_with_resized_position_embeddings(small, 64).encode_image(pixels)
    torch.testing.assert_close(ours, large.encode_image(pixels), atol=1e-5, rtol=0)


def test_a_resnet_takes_larger_images_with_interpolated_pooling_positions():
    small, large = model(**RESNET), model(**{**RESNET, "image_size": 256})
    twin = model_with_resized_position_embeddings(small, 256)
    state = small.state_dict()
    table = interpolate_position_embeddings(
        state["visual.attnpool.positional_embedding"], (3, 3), (8, 8)
    )
    state["visual.attnpool.positional_embedding"] = table
    large.load_state_dict(state)
    pixels = torch.randn(1, 3, 256, 256)
    assert torch.equal(twin.encode_image(pixels), large.encode_image(pixels))
    assert twin.visual.attnpool.positional_embedding.shape == (65, 256)


def test_a_convolutional_trunk_needs_no_positions():
    trunk = {"timm_model_name": "test_convnext", "timm_pool": "", "timm_proj": "linear"}
    twin = model_with_resized_position_embeddings(model(**trunk, image_size=160), 96)
    assert twin.encode_image(torch.randn(1, 3, 96, 96)).shape == (1, 24)


def test_the_first_model_stays_as_it_was_and_shares_all_other_weights():
    first = model(**VIT)
    before = {k: v.clone() for k, v in first.state_dict().items()}
    twin = model_with_resized_position_embeddings(first, 48)
    assert all(torch.equal(v, before[k]) for k, v in first.state_dict().items())
    assert twin.visual.conv1.weight is first.visual.conv1.weight
    assert twin.token_embedding.weight is first.token_embedding.weight
    assert first.visual.grid_size == (4, 4)
    assert not any(p.requires_grad for p in twin.parameters())


@pytest.mark.parametrize(("vision", "patch"), [(VIT, 8), (RESNET, 32)])
def test_a_size_between_patches_is_refused_and_the_nearest_is_named(vision, patch):
    with pytest.raises(
        ConfigError,
        match=f"multiple of {patch} .* got {5 * patch + 1}. The nearest multiple is {5 * patch}",
    ):
        model_with_resized_position_embeddings(model(**vision), 5 * patch + 1)
    with pytest.raises(ConfigError, match=rf"got 0\. The nearest multiple is {patch}"):
        model_with_resized_position_embeddings(model(**vision), 0)
