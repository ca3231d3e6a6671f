"""Compute trunk tokens, which are the output of an image tower before pooling."""

from typing import Any

import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.encoders.towers.vit_towers import OpenClipVit, vit_block_inputs
from surelabel.errors import ConfigError
from surelabel.records import Features

TokenGrid = tuple[Tensor, tuple[int, int]]  # tokens (n, p, w), rows and columns


def trunk_features(visual: Any, pixels: Tensor) -> Features:
    """Return the tokens of an image tower before pooling, without normalization.

    In a CLIP ResNet, the tokens are the positions of the last feature map before attention pooling.
    In a ViT, the tokens are the patch tokens of the last layer after pooling and projection of each
    token. In a timm tower, the tokens are the positions of the last feature map, or the patch
    tokens after the final norm.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Features with the unit vectors ``pooled`` ``(n, d)``, the tokens ``layers[-1]``
        ``(n, p, w)``, and the numbers of rows and columns of the grid. Each of ``n`` images has
        ``p`` tokens of width ``w`` in row-major order.

    Raises:
        ConfigError: If the tower has neither a feature map nor a grid of patch tokens.

    Source:
        TailorCLIP, arXiv:2606.11626: the tokens are the input of the student network in the
        authors' code.
    """
    if isinstance(visual, ModifiedResNet):
        outputs = visual.forward_intermediates(pixels, indices=1)
        return trunk_features_from_tokens(
            outputs["image_features"],
            feature_map_to_trunk_tokens(outputs["image_intermediates"][-1]),
        )
    if isinstance(visual, VisionTransformer):
        tower = OpenClipVit(visual)
        outputs = vit_block_inputs(tower, tower.embed(pixels), count=0)[-1]
        tokens = tower.project(outputs[:, tower.n_prefix :])
        return trunk_features_from_tokens(tower.pool(outputs), (tokens, tower.grid))
    if isinstance(visual, TimmModel):
        last = visual.trunk.forward_features(pixels)
        pooled = visual.head(visual.trunk.forward_head(last))
        return trunk_features_from_tokens(
            pooled, timm_trunk_tokens(visual.trunk, last), visual.trunk
        )
    raise no_trunk_token_grid_error(visual)


def timm_trunk_tokens(network: Any, last: Tensor) -> TokenGrid | None:
    """Return the trunk tokens and the grid of a timm network.

    Args:
        network: Network of timm.
        last: Output of ``forward_features`` of the network.

    Returns:
        Tokens ``(n, p, w)``, and the numbers of rows and columns of the grid. If the tokens do not
        form a grid, None is returned.
    """
    if last.ndim == 4 and last.shape[1] == network.num_features:
        return feature_map_to_trunk_tokens(last)
    if last.ndim == 4 and last.shape[3] == network.num_features:  # channels last, as in Swin
        return feature_map_to_trunk_tokens(last.movedim(3, 1))
    grid = getattr(getattr(network, "patch_embed", None), "grid_size", None)
    n_prefix = getattr(network, "num_prefix_tokens", None)
    if last.ndim != 3 or not grid or n_prefix is None:
        return None
    if last.shape[1] != n_prefix + grid[0] * grid[1]:
        return None
    return last[:, n_prefix:], (grid[0], grid[1])


def trunk_features_from_tokens(
    pooled: Tensor, tokens: TokenGrid | None, network: Any = None
) -> Features:
    """Return ``Features`` with the normalized pooled vectors and the trunk tokens.

    Args:
        pooled: Pooled vectors, ``(n, d)``.
        tokens: Trunk tokens, and the numbers of rows and columns of their grid.
        network: Network that computed the tokens, for the error message.

    Raises:
        ConfigError: If ``tokens`` is None, because the network has no grid of tokens.
    """
    if tokens is None:
        raise no_trunk_token_grid_error(network)
    return Features(F.normalize(pooled, dim=-1), layers={-1: tokens[0]}, grid=tokens[1])


def trunk_token_width(features: Features) -> int:
    """Return the number of values of each trunk token in ``layers[-1]``."""
    assert features.layers is not None
    return features.layers[-1].shape[-1]


def feature_map_to_trunk_tokens(last: Tensor) -> TokenGrid:
    """Convert a feature map ``(n, w, rows, columns)`` to tokens ``(n, rows · columns, w)``.

    The numbers of rows and columns are also returned.
    """
    return last.flatten(2).transpose(1, 2), (last.shape[2], last.shape[3])


def no_trunk_token_grid_error(network: Any) -> ConfigError:
    """Return the error for a network without a grid of tokens."""
    return ConfigError(
        "Trunk tokens need a network with a feature map or a grid of patch tokens; "
        f"{type(network).__name__} has neither. Use a ViT, a CLIP ResNet, or another timm network."
    )
