"""What the trunk of a tower gives before it is pooled: the raw material of heads of one's own."""

from typing import Any

import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.records import Features

Tokens = tuple[Tensor, tuple[int, int]]


def trunk(visual: Any, pixels: Tensor) -> Features:
    """Tokens of a tower, not of unit length.

    CLIP ResNet: the last map, before attention pooling. ViT: tokens of the last layer after the
    closing norm and projection, without the class token. timm: the last map, or the tokens after
    the closing norm.

    Args:
        visual: The image tower of an open_clip model.
        pixels: Prepared pictures, ``(n, 3, h, w)``.

    Returns:
        Unit vectors ``pooled`` ``(n, d)``; ``layers[-1]``, ``(n, p, w)``, row by row; the grid.

    Raises:
        ConfigError: the tower has no grid of tokens.

    Source:
        TailorCLIP, arXiv:2606.11626: what its student is given, by the authors' code.
    """
    if isinstance(visual, ModifiedResNet):
        seen = visual.forward_intermediates(pixels, indices=1)
        return trunk_features(seen["image_features"], placed(seen["image_intermediates"][-1]))
    if isinstance(visual, VisionTransformer):
        seen = visual.forward_intermediates(
            pixels, indices=1, normalize_intermediates=True, output_fmt="NLC"
        )
        tokens = seen["image_intermediates"][-1] @ visual.proj
        return trunk_features(seen["image_features"], (tokens, visual.grid_size))
    if isinstance(visual, TimmModel):
        last = visual.trunk.forward_features(pixels)
        pooled = visual.head(visual.trunk.forward_head(last))
        return trunk_features(pooled, timm_tokens(visual.trunk, last), visual.trunk)
    raise no_tokens(visual)


def timm_tokens(network: Any, last: Tensor) -> Tokens | None:
    """Tokens of a timm network and their grid, of what its ``forward_features`` gave.

    None for maps whose channels do not come first, and for tokens whose grid is not known.
    """
    if last.ndim == 4:
        return placed(last) if last.shape[1] == network.num_features else None
    grid = getattr(getattr(network, "patch_embed", None), "grid_size", None)
    extra = getattr(network, "num_prefix_tokens", None)
    if last.ndim != 3 or not grid or extra is None or last.shape[1] != extra + grid[0] * grid[1]:
        return None
    return last[:, extra:], (grid[0], grid[1])


def trunk_features(pooled: Tensor, tokens: Tokens | None, network: Any = None) -> Features:
    """Both as features.

    Raises:
        ConfigError: the network gave no tokens.
    """
    if tokens is None:
        raise no_tokens(network)
    return Features(F.normalize(pooled, dim=-1), layers={-1: tokens[0]}, grid=tokens[1])


def trunk_width(seen: Features) -> int:
    """Size ``w`` of the tokens in ``layers[-1]``."""
    assert seen.layers is not None
    return seen.layers[-1].shape[-1]


def placed(last: Tensor) -> Tokens:
    """A map ``(n, w, down, across)`` as tokens ``(n, p, w)`` and their grid."""
    return last.flatten(2).transpose(1, 2), (last.shape[2], last.shape[3])


def no_tokens(network: Any) -> ConfigError:
    """What is said where there is no grid of tokens."""
    return ConfigError(
        f"A head on the trunk needs a map or a grid of tokens. {type(network).__name__} has none; "
        "take a ViT, a CLIP ResNet, or a timm network of one of these kinds."
    )
