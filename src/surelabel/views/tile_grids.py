"""Define grids of tiles of an image, which are encoded from coarse to fine."""

from surelabel.errors import ConfigError
from surelabel.records import Features
from surelabel.views.view_layouts import TileLayout


class TileGrids:
    """One or more regular grids of tiles, in order from coarse to fine.

    Args:
        rows, columns: Number of tile rows and tile columns of the finest grid, >= 1.
        grids: Largest number of grids, >= 1. Each coarser grid has one row and one column less, but
            at least one, until a grid has at most two rows and two columns.

    Attributes:
        layouts: Layout of each grid.
        n_tiles: Number of tiles of all grids.

    Raises:
        ConfigError: If ``grids`` is below 1.
        InputError: If ``rows`` or ``columns`` is below 1.

    Example:
        >>> grids = TileGrids(3, 3, 2)
        >>> [(layout.rows, layout.columns) for layout in grids.layouts], grids.n_tiles
        ([(2, 2), (3, 3)], 13)
    """

    def __init__(self, rows: int, columns: int, grids: int):
        if grids < 1:
            raise ConfigError(f"grids must be 1 or more; got {grids}.")
        layouts = [TileLayout(rows, columns)]
        while len(layouts) < grids and max(layouts[-1].rows, layouts[-1].columns) > 2:
            finer = layouts[-1]
            layouts.append(TileLayout(max(finer.rows - 1, 1), max(finer.columns - 1, 1)))
        self.layouts = layouts[::-1]
        self.n_tiles = sum(layout.rows * layout.columns for layout in layouts)

    def next_layout(self, features: Features) -> TileLayout | None:
        """Return the first grid whose tiles are not yet encoded, or None.

        Args:
            features: Features of images, whose ``views`` are the tiles of the first grids.
        """
        n_remaining = 0 if features.views is None else features.views.shape[1]
        for layout in self.layouts:
            if n_remaining <= 0:
                return layout
            n_remaining -= layout.rows * layout.columns
        return None
