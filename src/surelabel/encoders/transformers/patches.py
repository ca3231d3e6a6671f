"""Compute patch features of transformers dual encoders in the joint space of images and texts."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.towers.patch_attention import normalize_patch_attention_rows
from surelabel.encoders.towers.vit_towers import VitTower
from surelabel.encoders.transformers.naflex import NaflexPreprocessor
from surelabel.encoders.transformers.vit import TransformersVit
from surelabel.records import Features

PatchFeatures = Callable[[VitTower, Tensor], Features]  # function of a ViT and its input tokens


def transformers_patch_features(
    model: Any,
    preprocess: ImagePreprocessor | NaflexPreprocessor,
    pixels: Tensor,
    compute: PatchFeatures,
) -> Features:
    """Return patch features of an image tower of transformers.

    The patch grid of SigLIP 2 NaFlex has the aspect ratio of the image. Its patch features are
    resized to a square grid of at most ``max_num_patches`` patches by bilinear interpolation, so
    that all images have the same grid.

    Args:
        model: Model of transformers.
        preprocess: Preprocessing of the images.
        pixels: Preprocessed images.
        compute: Function that computes the features, such as :func:`plain_vit_patch_features`.

    Source:
        Cao et al., TIPSv2, arXiv:2604.12012: patch tokens that are aligned with texts.
    """
    if isinstance(preprocess, NaflexPreprocessor):
        return _naflex_patch_features(model, preprocess, pixels, compute)
    pixels = preprocess.check_pixels(pixels)
    side = model.vision_model.config.patch_size
    tower = TransformersVit(model, (pixels.shape[-2] // side, pixels.shape[-1] // side))
    return compute(tower, tower.embed(pixels))


def resize_patch_features(features: Features, grid: tuple[int, int]) -> Features:
    """Resize patch vectors, layer outputs, and the attention between patches to another grid.

        x' = R x, normalized        A' = R A R', with rows of sum 1        y' = R y

    where R contains the weights of bilinear interpolation.

    Args:
        features: Features with ``patches`` and ``grid``, with or without ``attention`` and
            ``multi_layer``.
        grid: Numbers of rows and columns of the new grid.
    """
    assert features.patches is not None
    assert features.grid is not None
    n_patches = features.patches.shape[1]
    units = torch.eye(n_patches, device=features.patches.device).view(-1, 1, *features.grid)
    weights = F.interpolate(units, size=grid, mode="bilinear", align_corners=False)
    weights = weights.view(n_patches, -1).T
    attention = features.attention
    if attention is not None:
        attention = normalize_patch_attention_rows(weights @ attention @ weights.T)
    outputs = features.multi_layer
    if outputs is not None:
        outputs = (weights @ outputs.flatten(2)).unflatten(2, outputs.shape[2:])
    patches = F.normalize(weights @ features.patches, dim=-1)
    return Features(features.pooled, patches, grid, attention=attention, multi_layer=outputs)


def _naflex_patch_features(
    model: Any, preprocess: NaflexPreprocessor, pixels: Tensor, compute: PatchFeatures
) -> Features:
    """Compute the features of all images with the same patch grid together."""
    inputs = preprocess.unpack(pixels)
    side = math.isqrt(inputs.pixel_values.shape[1])
    grids, group_of_image = inputs.spatial_shapes.unique(dim=0, return_inverse=True)
    parts, rows = [], []
    for group, (down, across) in enumerate(grids.tolist()):
        members = (group_of_image == group).nonzero()[:, 0]
        tower = TransformersVit(model, (down, across))
        tokens = tower.embed(
            inputs.pixel_values[members, : down * across], inputs.spatial_shapes[members]
        )
        parts.append(resize_patch_features(compute(tower, tokens), (side, side)))
        rows.append(members)
    order = torch.cat(rows).argsort()
    attention = [part.attention for part in parts if part.attention is not None]
    outputs = [part.multi_layer for part in parts if part.multi_layer is not None]
    return Features(
        torch.cat([part.pooled for part in parts])[order],
        torch.cat([part.patches for part in parts if part.patches is not None])[order],
        (side, side),
        attention=torch.cat(attention)[order] if attention else None,
        multi_layer=torch.cat(outputs)[order] if outputs else None,
    )
