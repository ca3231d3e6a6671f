"""A picture cut into a regular grid: views without chance, so they can be kept."""

from itertools import pairwise

from surelabel.errors import InputError
from surelabel.views.boxes import Box


def tiles(size: tuple[int, int], *, down: int = 3, across: int = 3) -> list[Box]:
    """Cut a picture, or a grid of cells, into tiles that cover it once and differ by one at most.

    Args:
        size: Width and height of the picture in pixels, or columns and rows of a grid.
        down: Tiles in a column, at least 1.
        across: Tiles in a row, at least 1.

    Returns:
        ``down · across`` boxes, row by row. With 1 and 1 the only tile is the picture.

    Raises:
        InputError: there are fewer pixels, or cells, than tiles in a row or a column.

    Source:
        CDUL (ICCV 2023), 3 by 3 snippets of a picture, as the reproduction arXiv:2405.11574 cuts
        them.

    Example:
        >>> [(box.left, box.width) for box in tiles((10, 9), down=1)]
        [(0, 3), (3, 4), (7, 3)]
    """
    if min(down, across) < 1:
        raise InputError(f"down and across must be 1 or more. Got {down} and {across}.")
    if size[0] < across or size[1] < down:
        raise InputError(
            f"A picture must have a pixel for every tile, {across} across and {down} down. "
            f"Got {size[0]} by {size[1]}; ask for fewer tiles."
        )
    columns, rows = _cuts(size[0], across), _cuts(size[1], down)
    return [
        Box(left, top, right - left, bottom - top)
        for top, bottom in pairwise(rows)
        for left, right in pairwise(columns)
    ]


def _cuts(length: int, parts: int) -> list[int]:
    return [round(i * length / parts) for i in range(parts + 1)]
