"""Grids of tiles of an image, from coarse to fine."""

from collections.abc import Sequence

from surelabel.errors import ConfigError
from surelabel.records import Features
from surelabel.views.view_layouts import TileLayout


def tile_grids(rows: int, columns: int, grids: int) -> list[TileLayout]:
    """Return the grids of tiles in order from coarse to fine.

    Args:
        rows, columns: Number of tile rows and tile columns of the finest grid, >= 1.
        grids: Largest number of grids, >= 1. Each coarser grid has one row and one column less,
            until a grid has at most two of each.

    Raises:
        ConfigError: If ``grids`` is below 1.
        InputError: If ``rows`` or ``columns`` is below 1.

    Example:
        >>> [(layout.rows, layout.columns) for layout in tile_grids(3, 3, 2)]
        [(2, 2), (3, 3)]
    """
    if grids < 1:
        raise ConfigError(f"grids must be 1 or more; got {grids}.")
    layouts = [TileLayout(rows, columns)]
    while len(layouts) < grids and max(layouts[-1].rows, layouts[-1].columns) > 2:
        finer = layouts[-1]
        layouts.append(TileLayout(max(finer.rows - 1, 1), max(finer.columns - 1, 1)))
    return layouts[::-1]


def next_tile_grid(layouts: Sequence[TileLayout], features: Features) -> TileLayout | None:
    """Return the first grid whose tiles are not in ``features.views``, or None.

    Args:
        layouts: Grids of tiles in the order in which they are encoded.
        features: Features of images, whose ``views`` are the tiles of the first grids.
    """
    n_remaining = 0 if features.views is None else features.views.shape[1]
    for layout in layouts:
        if n_remaining <= 0:
            return layout
        n_remaining -= layout.rows * layout.columns
    return None
