import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.errors import ConfigError
from surelabel.methods import CosineProjection
from surelabel.records import Features

IMAGES, TEXTS = torch.randn(4, 6), torch.randn(3, 6)


def test_before_training_the_score_is_the_scaled_cosine():
    method = CosineProjection(PrecomputedFeatures(6), [], initial_scale=5.0, initial_bias=-2.0)
    found = method.pair_scores(Features(IMAGES), Features(TEXTS))
    for i, image in enumerate(IMAGES):
        for j, text in enumerate(TEXTS):
            cosine = F.cosine_similarity(image, text, dim=0)
            assert math.isclose(found[i, j].item(), 5 * cosine.item() - 2, abs_tol=1e-5)
    assert torch.equal(method.training_pair_scores(Features(IMAGES), Features(TEXTS)), found)


def test_vectors_of_other_widths_are_scored():
    method = CosineProjection(PrecomputedFeatures(6), [], text_width=9, width=4)
    assert method.pair_scores(Features(IMAGES), Features(torch.randn(3, 9))).shape == (4, 3)


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_scale_that_is_not_positive_is_refused(scale):
    with pytest.raises(ConfigError, match="initial_scale must be above 0"):
        CosineProjection(PrecomputedFeatures(6), [], initial_scale=scale)


def test_the_scale_can_be_fixed():
    method = CosineProjection(PrecomputedFeatures(6), [], train_scale=False)
    trained = {name for name, value in method.named_parameters() if value.requires_grad}
    assert trained == {"projection.images.weight", "projection.texts.weight"}
    assert method.pair_scores(Features(IMAGES), Features(TEXTS)).requires_grad
