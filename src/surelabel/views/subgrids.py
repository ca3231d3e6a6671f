"""Views of a feature map that is already there: a picture is encoded once, however many views."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.backbones.positions import stretched
from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes
from surelabel.views.boxes import Box, check_inside


def mean_of_patches(patches: Tensor, grid: tuple[int, int], boxes: Sequence[Box]) -> Tensor:
    """Vectors of sub-grids: the mean of the patch vectors inside, as a unit vector.

    Args:
        patches: Unit vectors of patches, row by row, ``(n, p, d)``.
        grid: Patches down and across.
        boxes: Sub-grids in cells, the same for every picture, ``t`` of them.

    Returns:
        ``(n, t, d)``, unit vectors.

    Raises:
        InputError: ``grid`` does not hold ``p`` patches, a box reaches out of it, or there is
            none.

    Source:
        none; ours. After the dense regions of CLIP by Zhou et al., Extract Free Dense Labels from
        CLIP, arXiv:2112.01071.

    Example:
        >>> patches = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> mean_of_patches(patches, (1, 2), [Box(0, 0, 2, 1), Box(1, 0, 1, 1)])
        tensor([[[0.7071, 0.7071],
                 [0.0000, 1.0000]]])
    """
    check_shapes(patches=(patches, "n p d"))
    down, across = grid
    if down * across != patches.shape[1]:
        raise InputError(
            f"grid must hold all {patches.shape[1]} patches, down times across. Got {grid}."
        )
    _check_boxes(boxes, grid)
    placed = patches.unflatten(1, grid)
    means = [_cut(placed, box).mean(dim=1) for box in boxes]
    return F.normalize(torch.stack(means, dim=1), dim=-1)


@torch.no_grad()
def last_map(visual: Any, pixels: Tensor) -> Tensor:
    """The last feature map of a CLIP ResNet, before its attention pooling.

    Args:
        visual: The image tower of an open_clip model.
        pixels: Prepared pictures, ``(n, 3, h, w)``.

    Returns:
        ``(n, w, down, across)``; one place for 32 by 32 pixels.

    Raises:
        ConfigError: the tower is no CLIP ResNet.
    """
    if not isinstance(visual, ModifiedResNet):
        raise ConfigError(
            "Sub-grids are pooled again by the attention pooling of a CLIP ResNet. "
            f"Got {type(visual).__name__}; take the mean of its patches instead."
        )
    seen: Tensor = visual.forward_intermediates(pixels, indices=1)["image_intermediates"][-1]
    return seen


def attended(pool: Any, last: Tensor, boxes: Sequence[Box]) -> Tensor:
    """Vectors of sub-grids of a CLIP ResNet: its own attention pooling, run on the cells inside.

    A sub-grid is pooled as a whole picture is: its mean asks, the table of positions is stretched
    over it. Keys and values are linear in cell plus position, so those of the cells are worked
    out once a picture, not once a view.

    Args:
        pool: The attention pooling of the tower (``visual.attnpool``).
        last: Its last map, ``(n, w, down, across)``; see :func:`last_map`.
        boxes: Sub-grids in cells, the same for every picture, ``t`` of them.

    Returns:
        ``(n, t, d)``, unit vectors; for the whole grid the vector of the picture.

    Raises:
        InputError: a box reaches out of the grid, or there is none.

    Source:
        none; ours, in place of the random crops of TailorCLIP, arXiv:2606.11626, section 3.2,
        eq. 5, which are encoded one by one.

    Differs:
        A crop that is encoded anew is seen enlarged and knows nothing of what lay around it; a
        cell has seen its surroundings and is not enlarged.
    """
    check_shapes(last=(last, "n w down across"))
    down, across = last.shape[2:]
    _check_boxes(boxes, (down, across))
    cells = last.permute(0, 2, 3, 1)
    keys, values = F.linear(cells, pool.k_proj.weight), F.linear(cells, pool.v_proj.weight)
    views = [
        _pooled(pool, _cut(cells, box), _cut(keys, box), _cut(values, box), box) for box in boxes
    ]
    return F.normalize(torch.stack(views, dim=1), dim=-1)


def _pooled(pool: Any, cells: Tensor, keys: Tensor, values: Tensor, box: Box) -> Tensor:
    """The unnormalised vector of one sub-grid, ``(n, d)``."""
    side = round((len(pool.positional_embedding) - 1) ** 0.5)
    places = stretched(pool.positional_embedding, (side, side), (box.height, box.width))
    query = pool.q_proj(cells.mean(dim=1, keepdim=True) + places[:1])
    keys = _with_mean(keys) + pool.k_proj(places)
    values = _with_mean(values) + pool.v_proj(places)
    heads = [x.unflatten(-1, (pool.num_heads, -1)).transpose(1, 2) for x in (query, keys, values)]
    seen = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    vector: Tensor = pool.c_proj(seen)[:, 0]
    return vector


def _with_mean(cells: Tensor) -> Tensor:
    return torch.cat([cells.mean(dim=1, keepdim=True), cells], dim=1)


def _cut(placed: Tensor, box: Box) -> Tensor:
    """Cells of a box, row by row, ``(n, cells, width)``, of ``(n, down, across, width)``."""
    rows = slice(box.top, box.top + box.height)
    return placed[:, rows, box.left : box.left + box.width].flatten(1, 2)


def _check_boxes(boxes: Sequence[Box], grid: tuple[int, int]) -> None:
    if not boxes:
        raise InputError("There are no boxes to look at; ask for one view or more.")
    check_inside(boxes, (grid[1], grid[0]))
