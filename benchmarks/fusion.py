"""Fusion rules on real scores: OpenAI's CLIP RN50x64 on the 5,717 pictures of VOC2012 train.

    python benchmarks/fusion.py SCORES.npz

The file holds ``global_softmax`` and ``alpha_tile_max``, ``(n, c)``, the greatest over 3 by 3
tiles, and ``labels``, packed from the cache of github.com/cs-mshah/CDUL (Apache-2.0). That cache
has softmax(cosine / ln 100), so that ln 100 · log p is the cosine but for a constant a picture.
"""

import math
import sys

import numpy as np
import torch
from torch import Tensor

from surelabel.metrics import mean_average_precision
from surelabel.views import (
    centred,
    log_odds_of_softmax,
    max_with_dead_band,
    max_with_margin,
    mean,
    mean_of_centred,
    mean_of_standardised,
    standardised,
)

GOALS = {  # mAP, each to be met within 0.02
    "softmax at 100": 85.34,
    "max_with_margin": 88.33,
    "mean of centred": 90.08,
    "mean_of_standardised": 90.18,
}
WITHIN = 0.02
LOG_SCALE = math.log(100)


def fused(picture: Tensor, tiles: Tensor) -> dict[str, Tensor]:
    """Scores by every rule, ``(n, c)`` each.

    ``picture`` are centred cosines, ``tiles`` the greatest of the centred cosines of the tiles:
    they must not be centred again, so the mean of centred scores is here the mean of both as they
    are; ``mean_of_centred`` takes the tiles one by one, and centres what it is given.
    """
    best = tiles[:, None]
    odds = log_odds_of_softmax(picture), log_odds_of_softmax(best)
    by_rule = {
        "softmax at 100": odds[0],
        "softmax at 25": log_odds_of_softmax(picture, scale=25.0),
        "centred": picture,
        "standardised": standardised(picture),
        "tiles, centred": tiles,
        "tiles, standardised": standardised(tiles),
        "max_with_dead_band": max_with_dead_band(*odds),
        "max_with_margin": max_with_margin(*odds),
        "mean of centred": mean(picture, best),
        "mean of centred, centred again": mean_of_centred(picture, best),
        "mean_of_standardised": mean_of_standardised(picture, best),
    }
    for margin in (0.0, 0.5, 1.0, 2.0, 3.0):
        by_rule[f"max_with_margin, {margin}"] = max_with_margin(*odds, margin=margin)
    for share in (0.35, 0.65):
        by_rule[f"mean_of_standardised, {share}"] = mean_of_standardised(picture, best, share=share)
    return by_rule


def main(file: str) -> None:
    """Print the mAP of every rule, in percent, and fail if a goal is missed."""
    with np.load(file) as stored:
        labels = stored["labels"]
        picture, tiles = (
            LOG_SCALE * torch.from_numpy(stored[part]).double().log()
            for part in ("global_softmax", "alpha_tile_max")
        )
    tiles += LOG_SCALE * math.log(labels.shape[1])  # at so low a scale log Σ exp is mean + log c
    missed = []
    for name, scores in fused(centred(picture), tiles).items():
        found = 100 * mean_average_precision(scores.numpy(), labels)
        goal = GOALS.get(name)
        print(f"{name:32} {found:6.2f}" + (f"   goal {goal:.2f}" if goal else ""))
        if goal and abs(found - goal) > WITHIN:
            missed.append(name)
    if missed:
        sys.exit(f"Not within {WITHIN}: {', '.join(missed)}")


if __name__ == "__main__":
    main(sys.argv[1])
