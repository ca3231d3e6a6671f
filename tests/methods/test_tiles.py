"""Which tiles are asked for, and what becomes of them."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.methods import Tiles, ZeroShot
from surelabel.records import Features
from surelabel.views import FUSIONS, TileLayout

NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def asked(it, width):
    """All cuts that it asks for."""
    features, cuts = Features(torch.zeros(2, width)), []
    while (cut := it.next_views(features)) is not None:
        cuts.append(cut)
        seen = sum(cut.rows * cut.columns for cut in cuts)
        features = Features(features.pooled, views=torch.zeros(2, seen, width))
    return cuts


@pytest.mark.parametrize(
    ("settings", "grids"),
    [
        ({}, [TileLayout(2, 2), TileLayout(3, 3)]),
        ({"grids": 1}, [TileLayout(3, 3)]),
        (
            {"rows": 4, "columns": 2, "grids": 3},
            [TileLayout(2, 1), TileLayout(3, 1), TileLayout(4, 2)],
        ),
        ({"rows": 2, "columns": 2, "grids": 9}, [TileLayout(2, 2)]),
        ({"rows": 1, "columns": 1}, [TileLayout(1, 1)]),
    ],
    ids=str,
)
def test_grids_are_asked_for_once_each_the_coarsest_first(settings, grids, encoder):
    assert asked(Tiles(encoder, NAMES, **settings), encoder.width) == grids


def test_a_score_is_the_best_of_whole_and_tiles_less_the_margin(encoder):
    drawn = torch.randn(3, 14, encoder.width, generator=torch.Generator().manual_seed(0))
    vectors = F.normalize(drawn, dim=-1)
    plain = ZeroShot(encoder, NAMES)
    each = torch.stack([plain(Features(vectors[:, t])) for t in range(14)], dim=1)
    expected = [[max(row[0], max(row[1:]) - 0.25) for row in image.T.tolist()] for image in each]
    it = Tiles(encoder, NAMES, fusion_parameter=0.25)
    found = it(Features(vectors[:, 0], views=vectors[:, 1:]))
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_tile_that_shows_a_thing_brings_it_out(fusion, encoder):
    lion, guitar, _ = encoder.encode_labels(NAMES, ["a photo of a {}."])
    views = torch.stack([lion, lion, guitar, lion])[None]
    it = Tiles(encoder, NAMES, fusion=fusion)
    plain, tiled = it(Features(lion[None])), it(Features(lion[None], views=views))
    assert tiled[0, 1] > plain[0, 1] + 0.1
    assert tiled[0, 1] > tiled[0, 2]


def test_a_grid_without_tiles_is_refused(encoder):
    with pytest.raises(InputError, match="rows and columns must be 1 or more"):
        Tiles(encoder, NAMES, rows=0)
    with pytest.raises(ConfigError, match="grids must be 1 or more"):
        Tiles(encoder, NAMES, grids=0)
