import numpy as np
import pytest
import torch

from surelabel.errors import DataError
from surelabel.features.feature_packing import pack_features, unpack_features
from surelabel.records import Features


def features(part, grid=(3, 3), n=4, d=5, w=7):
    generator = torch.Generator().manual_seed(0)
    p = grid[0] * grid[1]
    pooled = torch.randn(n, d, generator=generator)
    patches = torch.randn(n, p, d, generator=generator)
    attention = torch.rand(n, p, p, generator=generator)
    attention = attention / attention.sum(-1, keepdim=True)
    layers = {-1: torch.randn(n, p, w, generator=generator) * 9}
    entering = {-4: torch.randn(n, 1 + p, w, generator=generator) * 9}
    beside = torch.randn(n, p, w, generator=generator)
    return {
        "images": Features(pooled),
        "patches": Features(pooled, patches, grid),
        "self_aware": Features(pooled, patches, grid),
        "attentive": Features(pooled, patches, grid, attention=attention),
        "multi_layer": Features(
            pooled, patches, grid, multi_layer=torch.randn(n, p, 2, w, generator=generator)
        ),
        "trunk": Features(pooled, grid=grid, layers=layers),
        "ladder/0/3": Features(pooled, grid=grid, layers=entering, self_aware_sum=beside),
    }[part]


PARTS = ["images", "patches", "self_aware", "attentive", "multi_layer", "trunk", "ladder/0/3"]


@pytest.mark.parametrize("part", PARTS)
def test_what_was_packed_comes_back_rounded_to_half_precision(part):
    given = features(part)
    found = unpack_features(part, pack_features(part, given), 5)
    for name in ("pooled", "patches", "attention", "multi_layer", "self_aware_sum"):
        wanted, got = getattr(given, name), getattr(found, name)
        assert (wanted is None) == (got is None), name
        if wanted is not None:
            torch.testing.assert_close(got, wanted, atol=1e-3, rtol=1e-3)
    assert found.grid == given.grid
    assert (found.layers is None) == (given.layers is None)
    for number, tokens in (given.layers or {}).items():
        torch.testing.assert_close(found.layers[number], tokens, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("part", ["attentive", "multi_layer", "trunk", "ladder/0/3"])
def test_a_grid_that_is_no_square_comes_back_too(part):
    assert unpack_features(part, pack_features(part, features(part, grid=(2, 6))), 5).grid == (2, 6)


def test_rows_of_attention_sum_to_one_again():
    generator = torch.Generator().manual_seed(0)
    attention = torch.rand(2, 400, 400, generator=generator).pow(8)
    attention = attention / attention.sum(-1, keepdim=True)
    given = Features(torch.ones(2, 5), torch.ones(2, 400, 5), (20, 20), attention=attention)
    found = unpack_features("attentive", pack_features("attentive", given), 5)
    torch.testing.assert_close(found.attention.sum(-1), torch.ones(2, 400))
    torch.testing.assert_close(found.attention, attention, atol=1e-4, rtol=0)


def test_each_image_is_an_array_of_its_own():
    arrays = pack_features("trunk", features("trunk"))
    assert arrays.dtype == np.float16
    alone = unpack_features("trunk", arrays[2:3], 5)
    assert torch.equal(alone.layers[-1], unpack_features("trunk", arrays, 5).layers[-1][2:3])


def test_what_half_precision_cannot_hold_is_refused():
    large = Features(torch.ones(1, 5), grid=(1, 1), layers={-1: torch.full((1, 1, 7), 7e4)})
    with pytest.raises(DataError, match=r"must be at most 65,504.* got 7e\+04. Use an encoder"):
        pack_features("trunk", large)
