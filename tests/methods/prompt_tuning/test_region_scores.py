import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.methods.prompt_tuning.region_scores import (
    pool_region_scores,
    region_score_maps,
    softmax_region_weights,
)


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


REGIONS, TEXTS = units(0, 2, 5, 8), units(1, 3, 8)
SCORES = torch.arange(30.0).view(2, 5, 3)
MASK = torch.tensor([[True, True, False, True, False], [True, True, True, True, True]])


@pytest.mark.parametrize("scale", [0.0, 20.0])
@pytest.mark.parametrize("mask", [None, MASK])
def test_the_weighted_sum_is_that_of_the_regions_that_exist(mask, scale):
    weights = softmax_region_weights(REGIONS, TEXTS, scale=scale, mask=mask)
    pooled = pool_region_scores(SCORES, weights)
    for i in range(2):
        rows = [r for r in range(5) if mask is None or mask[i, r]]
        for c in range(3):
            powers = {r: math.exp(scale * float(REGIONS[i, r] @ TEXTS[c])) for r in rows}
            expected = sum(powers[r] * SCORES[i, r, c].item() for r in rows) / sum(powers.values())
            assert pooled[i, c].item() == pytest.approx(expected, rel=1e-5)


def test_a_map_has_the_patches_of_an_image_row_by_row():
    scores = torch.arange(12.0).view(1, 6, 2)
    maps = region_score_maps(scores, (2, 3))
    assert maps.tolist() == [[[[0, 2, 4], [6, 8, 10]], [[1, 3, 5], [7, 9, 11]]]]
