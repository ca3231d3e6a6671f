"""Interpolate the position embeddings of an image tower to another image size."""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor, nn

from surelabel.errors import ConfigError

RESNET_STRIDE = 32  # pixels per position of the last feature map, on each side


def interpolate_position_embeddings(
    positions: Tensor, old: tuple[int, int], new: tuple[int, int]
) -> Tensor:
    """Interpolate position embeddings to another grid by bicubic interpolation.

    Args:
        positions: Position embeddings of the class token and ``p`` patches, ``(1 + p, w)``.
        old: Numbers of rows and columns of the current grid, with the product ``p``.
        new: Numbers of rows and columns of the new grid, with the product ``q``.

    Returns:
        Position embeddings of the class token and ``q`` patches, ``(1 + q, w)``. The embedding of
        the class token is unchanged.

    Example:
        >>> table = torch.arange(5.0)[:, None]
        >>> interpolate_position_embeddings(table, (2, 2), (2, 2))[:, 0]
        tensor([0., 1., 2., 3., 4.])
    """
    class_row, patch_rows = positions[:1], positions[1:]
    grid = patch_rows.T.reshape(1, -1, *old)
    grid = F.interpolate(grid, size=new, mode="bicubic", antialias=True, align_corners=False)
    return torch.cat([class_row, grid[0].flatten(1).T])


def model_with_resized_position_embeddings(model: nn.Module, size: int) -> nn.Module:
    """Return a copy of a model with position embeddings for another image size.

    The copy shares all other weights with the original model.

    Args:
        model: Model of open_clip.
        size: New side of the images, in pixels.

    Raises:
        ConfigError: If ``size`` is not a multiple of the patch size, or the image tower does not
            support other image sizes.
    """
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    resized: Any = copy.deepcopy(model, shared)
    visual = resized.visual
    if isinstance(visual, VisionTransformer):
        patch = visual.patch_size
        new = _position_embedding_grid(size, patch)
        table = interpolate_position_embeddings(visual.positional_embedding, visual.grid_size, new)
        visual.positional_embedding = nn.Parameter(table, requires_grad=False)
        visual.grid_size, visual.image_size = new, (size, size)
    elif isinstance(visual, ModifiedResNet):
        new = _position_embedding_grid(size, (RESNET_STRIDE, RESNET_STRIDE))
        pool = visual.attnpool
        side = round((len(pool.positional_embedding) - 1) ** 0.5)
        table = interpolate_position_embeddings(pool.positional_embedding, (side, side), new)
        pool.positional_embedding = nn.Parameter(table, requires_grad=False)
        visual.image_size = size
    elif isinstance(visual, TimmModel):
        _resize_timm_position_embeddings(visual, size)
    else:
        raise ConfigError(
            "A change of the image size needs a ViT, CLIP ResNet or timm tower; "
            f"got {type(visual).__name__}. Use the image size of the pretraining."
        )
    result: nn.Module = resized
    return result


def _position_embedding_grid(size: int, patch: tuple[int, int]) -> tuple[int, int]:
    if size < max(patch) or size % patch[0] or size % patch[1]:
        nearest = max(round(size / patch[0]), 1) * patch[0]
        raise ConfigError(
            f"The image size must be a multiple of {patch[0]} pixels for this tower; "
            f"got {size}. The nearest multiple is {nearest}."
        )
    return size // patch[0], size // patch[1]


def _resize_timm_position_embeddings(visual: TimmModel, size: int) -> None:
    """Set the image size of a timm tower in place. The position embeddings are interpolated."""
    stride = getattr(getattr(visual.trunk, "patch_embed", None), "patch_size", None)
    if stride is not None:
        _position_embedding_grid(size, tuple(stride))
    try:
        visual.set_input_size(size)
    except (ValueError, AssertionError, TypeError) as error:
        raise ConfigError(
            f"The image size must be supported by the timm trunk {type(visual.trunk).__name__}; "
            f"got {size} pixels ({error}). Use the image size of the pretraining."
        ) from error
    for parameter in visual.parameters():
        parameter.requires_grad_(False)
