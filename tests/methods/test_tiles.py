"""Which tiles are asked for, and what becomes of them."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.errors import ConfigError, InputError
from surelabel.methods import Tiled, ZeroShot
from surelabel.records import Features
from surelabel.views import FUSIONS, Tiles

NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


def asked(it, width):
    """All cuts that it asks for."""
    features, cuts = Features(torch.zeros(2, width)), []
    while (cut := it.cut(features)) is not None:
        cuts.append(cut)
        seen = sum(cut.down * cut.across for cut in cuts)
        features = Features(features.pooled, views=torch.zeros(2, seen, width))
    return cuts


@pytest.mark.parametrize(
    ("settings", "grids"),
    [
        ({}, [Tiles(2, 2), Tiles(3, 3)]),
        ({"grids": 1}, [Tiles(3, 3)]),
        ({"down": 4, "across": 2, "grids": 3}, [Tiles(2, 1), Tiles(3, 1), Tiles(4, 2)]),
        ({"down": 2, "across": 2, "grids": 9}, [Tiles(2, 2)]),
        ({"down": 1, "across": 1}, [Tiles(1, 1)]),
    ],
    ids=str,
)
def test_grids_are_asked_for_once_each_the_coarsest_first(settings, grids, backbone):
    assert asked(Tiled(backbone, NAMES, **settings), backbone.width) == grids


def test_a_score_is_the_best_of_whole_and_tiles_less_the_margin(backbone):
    drawn = torch.randn(3, 14, backbone.width, generator=torch.Generator().manual_seed(0))
    vectors = F.normalize(drawn, dim=-1)
    plain = ZeroShot(backbone, NAMES)
    each = torch.stack([plain(Features(vectors[:, t])) for t in range(14)], dim=1)
    expected = [
        [max(row[0], max(row[1:]) - 0.25) for row in picture.T.tolist()] for picture in each
    ]
    it = Tiled(backbone, NAMES, amount=0.25)
    found = it(Features(vectors[:, 0], views=vectors[:, 1:]))
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_tile_that_shows_a_thing_brings_it_out(fusion, backbone):
    lion, guitar, _ = backbone.texts(NAMES, ["a photo of a {}."])
    views = torch.stack([lion, lion, guitar, lion])[None]
    it = Tiled(backbone, NAMES, fusion=fusion)
    plain, tiled = it(Features(lion[None])), it(Features(lion[None], views=views))
    assert tiled[0, 1] > plain[0, 1] + 0.1
    assert tiled[0, 1] > tiled[0, 2]


def test_a_grid_without_tiles_is_refused(backbone):
    with pytest.raises(InputError, match="1 or more down and across"):
        Tiled(backbone, NAMES, down=0)
    with pytest.raises(ConfigError, match="grids must be 1 or more"):
        Tiled(backbone, NAMES, grids=0)
