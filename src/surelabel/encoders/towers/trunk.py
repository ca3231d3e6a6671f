"""Trunk tokens: the output of an image tower before pooling, the input of trainable heads."""

from typing import Any

import torch.nn.functional as F
from open_clip.model import TimmModel, VisionTransformer
from open_clip.modified_resnet import ModifiedResNet
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.records import Features

TokenGrid = tuple[Tensor, tuple[int, int]]  # tokens (n, p, w), rows and columns


def trunk_features(visual: Any, pixels: Tensor) -> Features:
    """Return the tokens of a tower before pooling, without normalization.

    CLIP ResNet: the last feature map, before attention pooling. ViT: the tokens of the last layer
    after the final norm and projection, without the class token. timm: the last feature map, or
    the tokens after the final norm.

    Args:
        visual: Image tower of an open_clip model.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Returns:
        Unit vectors ``pooled`` ``(n, d)``; tokens ``layers[-1]`` ``(n, p, w)``, row by row; the
        grid.

    Raises:
        ConfigError: If the tower has no grid of tokens.

    Source:
        TailorCLIP, arXiv:2606.11626: the input of its student, by the authors' code.
    """
    if isinstance(visual, ModifiedResNet):
        outputs = visual.forward_intermediates(pixels, indices=1)
        return trunk_features_from_tokens(
            outputs["image_features"], feature_map_to_tokens(outputs["image_intermediates"][-1])
        )
    if isinstance(visual, VisionTransformer):
        outputs = visual.forward_intermediates(
            pixels, indices=1, normalize_intermediates=True, output_fmt="NLC"
        )
        tokens = outputs["image_intermediates"][-1] @ visual.proj
        return trunk_features_from_tokens(outputs["image_features"], (tokens, visual.grid_size))
    if isinstance(visual, TimmModel):
        last = visual.trunk.forward_features(pixels)
        pooled = visual.head(visual.trunk.forward_head(last))
        return trunk_features_from_tokens(pooled, timm_tokens(visual.trunk, last), visual.trunk)
    raise no_token_grid_error(visual)


def timm_tokens(network: Any, last: Tensor) -> TokenGrid | None:
    """Return tokens and grid of the output of ``forward_features`` of a timm network.

    Args:
        network: Network of timm.
        last: Output of its ``forward_features``.

    Returns:
        Tokens and grid; None for feature maps with channels last and for tokens without a grid.
    """
    if last.ndim == 4:
        return feature_map_to_tokens(last) if last.shape[1] == network.num_features else None
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
    """Return pooled vectors, normalized, and tokens as ``Features``.

    Args:
        pooled: Pooled vectors, ``(n, d)``.
        tokens: Tokens and their grid, or None.
        network: Network of the tokens, for the message.

    Raises:
        ConfigError: If there are no tokens.
    """
    if tokens is None:
        raise no_token_grid_error(network)
    return Features(F.normalize(pooled, dim=-1), layers={-1: tokens[0]}, grid=tokens[1])


def trunk_token_width(features: Features) -> int:
    """Return the width ``w`` of the tokens in ``layers[-1]``."""
    assert features.layers is not None
    return features.layers[-1].shape[-1]


def feature_map_to_tokens(last: Tensor) -> TokenGrid:
    """Return a feature map ``(n, w, rows, columns)`` as tokens ``(n, p, w)`` and their grid."""
    return last.flatten(2).transpose(1, 2), (last.shape[2], last.shape[3])


def no_token_grid_error(network: Any) -> ConfigError:
    """Return the error for a network without a grid of tokens."""
    return ConfigError(
        "A head on the trunk needs a feature map or a grid of tokens; "
        f"{type(network).__name__} has none. Use a ViT, a CLIP ResNet, or such a timm network."
    )
