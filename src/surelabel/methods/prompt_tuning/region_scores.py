"""Return vectors of image regions, and pool the scores of regions or convert them to heat maps."""

import torch
from torch import Tensor

from surelabel.records import Features


def whole_images_and_patches(features: Features) -> Tensor:
    """Return the vectors of whole images and of their patches, ``(n, 1 + p, d)``."""
    assert features.patches is not None
    return torch.cat([features.pooled[:, None], features.patches], dim=1)


def softmax_region_weights(
    regions: Tensor, texts: Tensor, *, scale: float, mask: Tensor | None = None
) -> Tensor:
    """Return the weight of each region for each label, a softmax over regions, ``(n, p, c)``.

        w_rc = softmax over regions r of (scale · cos(x_r, t_c))

    Args:
        regions: Unit vectors of p regions of each image (x), ``(n, p, d)``.
        texts: Unit vectors of the labels (t), ``(c, d)``.
        scale: Inverse temperature, >= 0.
        mask: True where a region exists, ``(n, p)``. If None, all regions exist.
    """
    logits = scale * regions @ texts.T
    if mask is not None:
        logits = logits.masked_fill(~mask[..., None], -torch.inf)
    return logits.softmax(dim=1)


def pool_region_scores(scores: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sum of the scores of regions for each label, ``(n, c)``.

    Args:
        scores: Scores of p regions of each image, ``(n, p, c)``.
        weights: Weights of the regions, which sum to 1 over the regions, ``(n, p, c)``.
    """
    return (weights * scores).sum(dim=1)


def region_score_maps(scores: Tensor, grid: tuple[int, int] | None) -> Tensor:
    """Return the scores of patches as heat maps, ``(n, c, down, across)``.

    Args:
        scores: Scores of the patches, in row-major order of the grid, ``(n, p, c)``.
        grid: Numbers of rows and columns of the patch grid, required.
    """
    assert grid is not None
    maps: Tensor = scores.transpose(1, 2).unflatten(2, grid)
    return maps
