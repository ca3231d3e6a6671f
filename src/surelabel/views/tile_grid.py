"""Divide an image into a regular grid of tiles, which are deterministic and can be cached."""

from itertools import pairwise

from surelabel.errors import InputError
from surelabel.views.boxes import Box


def tile_grid_boxes(size: tuple[int, int], *, rows: int = 3, columns: int = 3) -> list[Box]:
    """Return boxes that partition an image, or a grid of cells, into a grid of tiles.

    The widths of two tiles differ by at most one pixel or cell, and so do their heights.

    Args:
        size: Width and height of the image in pixels, or numbers of columns and rows of a grid of
            cells.
        rows: Number of tile rows, at least 1.
        columns: Number of tile columns, at least 1.

    Returns:
        ``rows · columns`` boxes, row by row. With one row and one column, the tile is the image.

    Raises:
        InputError: If ``rows`` or ``columns`` is below 1, or if a side of the image has fewer
            pixels or cells than tiles.

    Source:
        The 3 by 3 snippets of an image in CDUL (ICCV 2023), with the boxes of the reproduction,
        arXiv:2405.11574.

    Example:
        >>> [(box.left, box.width) for box in tile_grid_boxes((10, 9), rows=1)]
        [(0, 3), (3, 4), (7, 3)]
    """
    if min(rows, columns) < 1:
        raise InputError(f"rows and columns must be 1 or more; got {rows} and {columns}.")
    if size[0] < columns or size[1] < rows:
        raise InputError(
            f"An image with {rows} by {columns} tiles must be at least {columns} pixels wide and "
            f"{rows} pixels high; got {size[0]} by {size[1]}. Use fewer tiles."
        )
    column_edges, row_edges = _tile_grid_edges(size[0], columns), _tile_grid_edges(size[1], rows)
    return [
        Box(left, top, right - left, bottom - top)
        for top, bottom in pairwise(row_edges)
        for left, right in pairwise(column_edges)
    ]


def _tile_grid_edges(length: int, n_parts: int) -> list[int]:
    return [round(i * length / n_parts) for i in range(n_parts + 1)]
