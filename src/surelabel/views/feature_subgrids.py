"""Vectors of views that are pooled from the feature map of one encoder pass."""

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
        patches: Unit vectors of patches, row by row, ``(n, p, d)``.
        grid: Number of patches down and across.
        boxes: ``t`` sub-grids in cells, shared by all images.

    Returns:
        Unit vectors, ``(n, t, d)``.

    Raises:
        InputError: If ``grid`` does not contain ``p`` patches, a box extends beyond the grid, or
            there is no box.

    Source:
        none; ours. After the dense regions of CLIP by Zhou et al., Extract Free Dense Labels from
        CLIP, arXiv:2112.01071.

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
            f"grid must contain {patches.shape[1]} patches, down times across; got {grid}."
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
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Feature map with one cell for 32 by 32 pixels, ``(n, w, down, across)``.

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

    A sub-grid is pooled like a whole image: the mean of the cells is the query, and the position
    embeddings are interpolated to the size of the sub-grid. Keys and values are linear in the sum
    of cell and position, so keys and values of cells are computed once per image, not once per
    view.

    Args:
        pool: Attention pooling of the tower (``visual.attnpool``).
        last_map: Last feature map, ``(n, w, down, across)``; see
            :func:`last_feature_map_for_subgrids`.
        boxes: ``t`` sub-grids in cells, shared by all images.

    Returns:
        Unit vectors, ``(n, t, d)``. The vector of the whole grid is the image vector.

    Raises:
        InputError: If a box extends beyond the grid, or there is no box.

    Source:
        none; ours, in place of the random crops of TailorCLIP, arXiv:2606.11626, section 3.2,
        eq. 5, which are encoded one by one.

    Differs:
        A separately encoded crop is enlarged and contains no information on its surroundings. A
        cell of the feature map depends on its surroundings and is not enlarged.
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
