"""Compare fusion rules on scores of OpenAI's CLIP RN50x64 for 5,717 images of VOC2012 train.

    python benchmarks/fusion.py SCORES.npz

The file contains ``global_softmax`` and ``alpha_tile_max`` (the maximum over 3 by 3 tiles), both
``(n, c)``, and ``labels``, from the cache of github.com/cs-mshah/CDUL (Apache-2.0). The scores in
this cache are p = softmax(cosine / ln 100), so ln 100 · log p is the cosine plus a constant per
image.
"""

import math
import sys

import numpy as np
import torch
from torch import Tensor

from surelabel.metrics import mean_average_precision
from surelabel.views import (
    center_relative_scores,
    max_fusion_with_dead_band,
    max_fusion_with_margin,
    mean_fusion,
    mean_fusion_of_centred,
    mean_fusion_of_standardized,
    relative_log_odds_of_softmax,
    standardize_relative_scores,
)

TARGETS = {  # expected mAP in percent, with a tolerance of 0.02
    "softmax at 100": 85.34,
    "max_with_margin": 88.33,
    "mean of centred": 90.08,
    "mean_of_standardized": 90.18,
}
TOLERANCE = 0.02
LOG_SCALE = math.log(100)


def fuse_scores(image: Tensor, tiles: Tensor) -> dict[str, Tensor]:
    """Return the scores of each fusion rule, ``(n, c)`` each.

    Args:
        image: Centred cosines of the whole image, ``(n, c)``.
        tiles: Maximum over tiles of their centred cosines, ``(n, c)``. The maximum must not be
            centred again, so "mean of centred" is the mean of both inputs. The fusion
            ``mean_of_centred`` centres its inputs, and expects the cosines of all tiles.
    """
    tile_view = tiles[:, None]
    log_odds = relative_log_odds_of_softmax(image), relative_log_odds_of_softmax(tile_view)
    by_rule = {
        "softmax at 100": log_odds[0],
        "softmax at 25": relative_log_odds_of_softmax(image, scale=25.0),
        "centred": image,
        "standardized": standardize_relative_scores(image),
        "tiles, centred": tiles,
        "tiles, standardized": standardize_relative_scores(tiles),
        "max_with_dead_band": max_fusion_with_dead_band(*log_odds),
        "max_with_margin": max_fusion_with_margin(*log_odds),
        "mean of centred": mean_fusion(image, tile_view),
        "mean of centred, centred again": mean_fusion_of_centred(image, tile_view),
        "mean_of_standardized": mean_fusion_of_standardized(image, tile_view),
    }
    for margin in (0.0, 0.5, 1.0, 2.0, 3.0):
        by_rule[f"max_with_margin, {margin}"] = max_fusion_with_margin(*log_odds, margin=margin)
    for image_weight in (0.35, 0.65):
        by_rule[f"mean_of_standardized, {image_weight}"] = mean_fusion_of_standardized(
            image, tile_view, image_weight=image_weight
        )
    return by_rule


def read_scores(file: str) -> tuple[Tensor, Tensor, np.ndarray]:
    """Return the centred cosines of image and tiles, and the targets, ``(n, c)`` each."""
    with np.load(file) as arrays:
        labels = arrays["labels"]
        image, tiles = (
            LOG_SCALE * torch.from_numpy(arrays[name]).double().log()
            for name in ("global_softmax", "alpha_tile_max")
        )
    tiles += LOG_SCALE * math.log(labels.shape[1])  # log Σ exp is mean + log c at low scale
    return center_relative_scores(image), tiles, labels


def main(file: str) -> None:
    """Print the mAP of every rule in percent; exit with an error if an mAP is not as expected."""
    image, tiles, labels = read_scores(file)
    missed = []
    for name, scores in fuse_scores(image, tiles).items():
        value = 100 * mean_average_precision(scores.numpy(), labels)
        target = TARGETS.get(name)
        print(f"{name:32} {value:6.2f}" + (f"   target {target:.2f}" if target else ""))
        if target and abs(value - target) > TOLERANCE:
            missed.append(name)
    if missed:
        sys.exit(f"Not within {TOLERANCE}: {', '.join(missed)}")


if __name__ == "__main__":
    main(sys.argv[1])
