"""Position tables stretched to another grid, so that a tower takes pictures of another size."""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor, nn

from surelabel.errors import ConfigError

RESNET_STRIDE = 32  # pixels a side of one position of the last map


def stretched(positions: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
    """Interpolate a table of positions, class row first, to another grid.

    Args:
        positions: The class row, then one row a patch, ``(1 + p, w)``.
        old: Patches down and across that the table was made for.
        new: Patches down and across that are wanted.

    Returns:
        ``(1 + q, w)``; the class row as it was, the others bicubic with antialiasing.

    Example:
        >>> table = torch.arange(5.0)[:, None]
        >>> stretched(table, (2, 2), (2, 2))[:, 0]
        tensor([0., 1., 2., 3., 4.])
    """
    first, rest = positions[:1], positions[1:]
    square = rest.T.reshape(1, -1, *old)
    square = F.interpolate(square, size=new, mode="bicubic", antialias=True, align_corners=False)
    return torch.cat([first, square[0].flatten(1).T])


def at_size(model: nn.Module, size: int) -> nn.Module:
    """The same model for pictures of ``size`` pixels a side. All weights but positions are shared.

    Raises:
        ConfigError: ``size`` is no multiple of a patch, or this kind of tower cannot be resized.
    """
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    twin: Any = copy.deepcopy(model, shared)
    visual = twin.visual
    if isinstance(visual, VisionTransformer):
        patch = visual.patch_size
        new = _grid(size, patch)
        table = stretched(visual.positional_embedding, visual.grid_size, new)
        visual.positional_embedding = nn.Parameter(table, requires_grad=False)
        visual.grid_size, visual.image_size = new, (size, size)
    elif isinstance(visual, ModifiedResNet):
        new = _grid(size, (RESNET_STRIDE, RESNET_STRIDE))
        pool = visual.attnpool
        side = round((len(pool.positional_embedding) - 1) ** 0.5)
        table = stretched(pool.positional_embedding, (side, side), new)
        pool.positional_embedding = nn.Parameter(table, requires_grad=False)
        visual.image_size = size
    elif isinstance(visual, TimmModel):
        _resize_trunk(visual, size)
    else:
        raise ConfigError(
            f"Only ViT, CLIP ResNet and timm towers take another input size. "
            f"Got {type(visual).__name__}; use it at the size it was made for."
        )
    resized: nn.Module = twin
    return resized


def _grid(size: int, patch: tuple[int, int]) -> tuple[int, int]:
    if size < max(patch) or size % patch[0] or size % patch[1]:
        near = max(round(size / patch[0]), 1) * patch[0]
        raise ConfigError(
            f"The input size must be a multiple of {patch[0]} pixels for this tower. "
            f"Got {size}; the nearest is {near}."
        )
    return size // patch[0], size // patch[1]


def _resize_trunk(visual: TimmModel, size: int) -> None:
    """Let timm stretch the positions of its own trunk; convolutions have none."""
    stride = getattr(getattr(visual.trunk, "patch_embed", None), "patch_size", None)
    if stride is not None:
        _grid(size, tuple(stride))
    try:
        visual.set_input_size(size)
    except (ValueError, AssertionError, TypeError) as error:
        raise ConfigError(
            f"The timm trunk {type(visual.trunk).__name__} does not take pictures of {size} "
            f"pixels ({error}); use it at the size it was made for."
        ) from error
    for parameter in visual.parameters():
        parameter.requires_grad_(False)
