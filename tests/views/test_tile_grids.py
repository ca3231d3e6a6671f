import pytest
import torch

from surelabel.errors import ConfigError, InputError
from surelabel.records import Features
from surelabel.views import TileGrids


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        ((3, 3, 1), [(3, 3)]),
        ((3, 3, 5), [(2, 2), (3, 3)]),
        ((4, 1, 3), [(2, 1), (3, 1), (4, 1)]),
        ((1, 1, 2), [(1, 1)]),
    ],
)
def test_each_coarser_grid_has_one_row_and_column_less(arguments, sizes):
    grids = TileGrids(*arguments)
    assert [(layout.rows, layout.columns) for layout in grids.layouts] == sizes
    assert grids.n_tiles == sum(rows * columns for rows, columns in sizes)


def test_grids_are_encoded_one_after_another():
    grids, pooled = TileGrids(3, 3, 2), torch.zeros(2, 8)
    n_encoded = [0, 4, 13]
    layouts = [
        grids.next_layout(Features(pooled, views=torch.zeros(2, n, 8) if n else None))
        for n in n_encoded
    ]
    assert layouts == [*grids.layouts, None]


def test_sizes_below_one_are_refused():
    with pytest.raises(ConfigError, match="grids must be 1 or more; got 0"):
        TileGrids(3, 3, 0)
    with pytest.raises(InputError, match="rows and columns must be 1 or more; got 0 and 3"):
        TileGrids(0, 3, 1)
