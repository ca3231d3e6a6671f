import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.encoders.towers.multi_layer_patches import (
    average_in_cells,
    multi_layer_patch_features,
    multi_layer_shape,
    multi_layer_vit_features,
)
from surelabel.encoders.towers.patch_features import self_aware_patch_features
from surelabel.encoders.towers.trunk import trunk_features
from surelabel.encoders.towers.vit_towers import vit_tower
from surelabel.records import Features


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def visual():
    return load_encoder("tiny-vit").model.visual


@torch.no_grad()
def test_the_layers_are_three_attention_outputs_and_two_block_outputs(visual):
    tower, pixels = vit_tower(visual), noise(1, 3, 96, 96)
    features = multi_layer_vit_features(tower, tower.embed(pixels))
    tokens, attended, outputs = tower.embed(pixels), [], []
    for block in tower.blocks:
        inputs = F.layer_norm(tokens, (192,), block.ln_1.weight, block.ln_1.bias)
        weight = block.attn.in_proj_weight.chunk(3)[2]
        values = F.linear(inputs, weight, block.attn.in_proj_bias.chunk(3)[2])[0]
        heads = values.chunk(block.attn.num_heads, dim=1)
        mixed = [(v @ v.T / v.shape[1] ** 0.5).softmax(dim=1) @ v for v in heads]
        attended.append(block.attn.out_proj(torch.cat(mixed, dim=1))[1:])
        tokens = block(tokens)
        outputs.append(tokens[0, 1:])
    expected = torch.stack([*attended[-3:], *outputs[-2:]], dim=1)
    torch.testing.assert_close(features.multi_layer[0], expected, atol=1e-4, rtol=1e-4)
    patches = F.normalize(tower.project(sum(attended[-3:])), dim=-1)
    torch.testing.assert_close(features.patches[0], patches, atol=1e-4, rtol=1e-4)


def test_cells_are_means_of_patches_after_vectors_and_attention_were_smoothed():
    patches, outputs = noise(1, 400, 3), noise(1, 400, 5, 4)
    cells = average_in_cells(Features(noise(1, 3), patches, (20, 20), multi_layer=outputs))
    assert cells.grid == (8, 8)
    assert multi_layer_shape(cells) == (5, 4)

    def mean_of(values, row, column, radius):
        """Return the mean over the patches of a cell of the means over their windows."""
        maps, means = values.unflatten(0, (20, 20)), []
        for i in range(row * 20 // 8, -(-(row + 1) * 20 // 8)):
            for j in range(column * 20 // 8, -(-(column + 1) * 20 // 8)):
                window = maps[
                    max(i - radius, 0) : i + radius + 1, max(j - radius, 0) : j + radius + 1
                ]
                means.append(window.flatten(0, 1).mean(dim=0))
        return torch.stack(means).mean(dim=0)

    for row, column in ((0, 0), (3, 5), (7, 7)):
        cell = 8 * row + column
        vector = F.normalize(mean_of(patches[0], row, column, 2), dim=-1)
        torch.testing.assert_close(cells.patches[0, cell], vector)
        layers = [mean_of(outputs[0, :, k], row, column, 2 if k < 3 else 0) for k in range(5)]
        expected = F.layer_norm(torch.stack(layers), (4,)) / 2
        torch.testing.assert_close(cells.multi_layer[0, cell], expected, atol=1e-5, rtol=1e-4)


def test_a_grid_with_few_patches_stays_as_it_is():
    patches = F.normalize(noise(2, 12, 3), dim=-1)
    features = Features(noise(2, 3), patches, (3, 4), multi_layer=noise(2, 12, 1, 6))
    cells = average_in_cells(features)
    assert cells.grid == (3, 4)
    torch.testing.assert_close(cells.patches, patches)
    expected = F.layer_norm(features.multi_layer, (6,)) / 6**0.5
    torch.testing.assert_close(cells.multi_layer, expected)


@torch.no_grad()
def test_a_resnet_has_its_trunk_tokens_as_the_only_layer():
    visual, pixels = load_encoder("tiny-rn").model.visual, noise(2, 3, 96, 96)
    features = multi_layer_patch_features(visual, pixels)
    tokens = trunk_features(visual, pixels).layers[-1]
    expected = F.layer_norm(tokens, tokens.shape[-1:]) / tokens.shape[-1] ** 0.5
    torch.testing.assert_close(features.multi_layer[:, :, 0], expected)
    torch.testing.assert_close(features.patches, self_aware_patch_features(visual, pixels).patches)
