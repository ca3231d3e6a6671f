"""Pool vectors of sub-grids of an image from the feature map of a single forward pass."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.encoders.towers.position_embeddings import interpolate_position_embeddings
from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes
from surelabel.views.boxes import Box, check_boxes_inside


def mean_pool_subgrids(patches: Tensor, grid: tuple[int, int], boxes: Sequence[Box]) -> Tensor:
    """Return the normalized mean of the patch vectors inside each sub-grid.

    Args:
        patches: Unit vectors of the ``p`` patches of each image, row by row, ``(n, p, d)``.
        grid: Numbers of rows and columns of the grid of patches.
        boxes: ``t`` sub-grids, measured in patches; every image has the same sub-grids.

    Returns:
        Unit vectors of the sub-grids of each image, ``(n, t, d)``.

    Raises:
        InputError: If ``grid`` does not contain ``p`` patches, a box extends beyond the grid, or
            there is no box.

    Source:
        None; ours. The patch vectors follow Zhou et al., Extract Free Dense Labels from CLIP,
        arXiv:2112.01071.

    Example:
        >>> patches = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> mean_pool_subgrids(patches, (1, 2), [Box(0, 0, 2, 1), Box(1, 0, 1, 1)])
        tensor([[[0.7071, 0.7071],
                 [0.0000, 1.0000]]])
    """
    check_shapes(patches=(patches, "n p d"))
    down, across = grid
    if down * across != patches.shape[1]:
        raise InputError(
            f"grid must contain {patches.shape[1]} patches (rows times columns); got {grid}."
        )
    _check_subgrids(boxes, grid)
    cells = patches.unflatten(1, grid)
    means = [_select_subgrid_cells(cells, box).mean(dim=1) for box in boxes]
    return F.normalize(torch.stack(means, dim=1), dim=-1)


@torch.no_grad()
def last_feature_map_for_subgrids(visual: Any, pixels: Tensor) -> Tensor:
    """Return the last feature map of a CLIP ResNet, before its attention pooling.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, height, width)``.

    Returns:
        Feature map with one cell for each 32 by 32 pixels, ``(n, w, down, across)``: n images, w
        channels, and the numbers of rows and columns.

    Raises:
        ConfigError: If the tower is not a CLIP ResNet.
    """
    if not isinstance(visual, ModifiedResNet):
        raise ConfigError(
            "Attention pooling of sub-grids needs a CLIP ResNet; "
            f"got {type(visual).__name__}. Use mean_pool_subgrids instead."
        )
    intermediates = visual.forward_intermediates(pixels, indices=1)["image_intermediates"]
    last_map: Tensor = intermediates[-1]
    return last_map


def attention_pool_subgrids(pool: Any, last_map: Tensor, boxes: Sequence[Box]) -> Tensor:
    """Return vectors of sub-grids, computed by the attention pooling of a CLIP ResNet.

    A sub-grid is pooled like a whole image. The query is computed from the mean of its cells, and
    the position embeddings are interpolated to the size of the sub-grid. Keys and values are
    linear in the sum of cell and position embedding. The contribution of the cells is therefore
    computed once per image, not once per sub-grid.

    Args:
        pool: Attention pooling module of the image tower (``visual.attnpool``).
        last_map: Last feature map, ``(n, w, down, across)``; see
            :func:`last_feature_map_for_subgrids`.
        boxes: ``t`` sub-grids, measured in cells; every image has the same sub-grids.

    Returns:
        Unit vectors of the sub-grids of each image, ``(n, t, d)``. The vector of a sub-grid with
        all cells is the image vector that the encoder returns.

    Raises:
        InputError: If a box extends beyond the grid, or there is no box.

    Source:
        None; ours, in place of the random crops of TailorCLIP, arXiv:2606.11626, section 3.2,
        eq. 5, which are encoded one by one.

    Differs:
        TailorCLIP enlarges and encodes each crop, so the vector depends on the pixels of the crop
        only. Cells of a feature map also depend on the pixels around them, and are not enlarged.
    """
    check_shapes(last_map=(last_map, "n w down across"))
    down, across = last_map.shape[2:]
    _check_subgrids(boxes, (down, across))
    cells = last_map.permute(0, 2, 3, 1)
    keys, values = F.linear(cells, pool.k_proj.weight), F.linear(cells, pool.v_proj.weight)
    vectors = [
        _attention_pool_subgrid(
            pool,
            box,
            _select_subgrid_cells(cells, box),
            _select_subgrid_cells(keys, box),
            _select_subgrid_cells(values, box),
        )
        for box in boxes
    ]
    return F.normalize(torch.stack(vectors, dim=1), dim=-1)


def _attention_pool_subgrid(
    pool: Any, box: Box, cells: Tensor, keys: Tensor, values: Tensor
) -> Tensor:
    """Return the unnormalized vector of one sub-grid, ``(n, d)``."""
    side = round((len(pool.positional_embedding) - 1) ** 0.5)
    positions = interpolate_position_embeddings(
        pool.positional_embedding, (side, side), (box.height, box.width)
    )
    query = pool.q_proj(cells.mean(dim=1, keepdim=True) + positions[:1])
    keys = _prepend_mean_of_subgrid(keys) + pool.k_proj(positions)
    values = _prepend_mean_of_subgrid(values) + pool.v_proj(positions)
    heads = [x.unflatten(-1, (pool.num_heads, -1)).transpose(1, 2) for x in (query, keys, values)]
    attended = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    vector: Tensor = pool.c_proj(attended)[:, 0]
    return vector


def _prepend_mean_of_subgrid(cells: Tensor) -> Tensor:
    return torch.cat([cells.mean(dim=1, keepdim=True), cells], dim=1)


def _select_subgrid_cells(cells: Tensor, box: Box) -> Tensor:
    """Return the cells of a box of ``(n, down, across, w)``, row by row, ``(n, cells, w)``."""
    rows = slice(box.top, box.top + box.height)
    return cells[:, rows, box.left : box.left + box.width].flatten(1, 2)


def _check_subgrids(boxes: Sequence[Box], grid: tuple[int, int]) -> None:
    if not boxes:
        raise InputError("boxes must contain one sub-grid or more; got none.")
    check_boxes_inside(boxes, (grid[1], grid[0]))
