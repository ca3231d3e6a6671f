import numpy as np
import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import ConfigError
from surelabel.methods.text_scoring.text_prior import shrink_to_text_prior


def drawn(c=3, d=4, m=20):
    generator = torch.Generator().manual_seed(0)
    slopes, levels = (torch.randn(c, *s, generator=generator) for s in ((d,), ()))
    texts = F.normalize(torch.randn(c, d, generator=generator), dim=-1)
    vectors = torch.randn(m, d, generator=generator)
    return slopes - slopes.mean(0), levels - levels.mean(), texts, vectors


def test_equals_the_formula_score_by_score():
    slopes, levels, texts, vectors = drawn()
    images = torch.tensor([20.0, 1.0, 60.0])
    weight, level = shrink_to_text_prior(
        slopes, levels, texts, vectors, images, prior_strength=20.0
    )
    cosines = (vectors @ texts.T).numpy()
    cosines = cosines - cosines.mean(1, keepdims=True)
    learnt = (vectors @ slopes.T + levels).numpy()
    for j, k in enumerate([0.5, 1 / 21, 0.75]):
        for i in range(len(vectors)):
            expected = (1 - k) * cosines[i, j] / cosines.std() + k * learnt[i, j] / learnt.std()
            got = float(vectors[i] @ weight[j] + level[j])
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("prior_strength", [0.0, 20.0])
def test_a_name_without_images_keeps_its_text(prior_strength):
    slopes, levels, texts, vectors = drawn()
    images = torch.tensor([9.0, 9.0, 0.0])
    slopes[2], levels[2] = 0, 0
    weight, level = shrink_to_text_prior(
        slopes, levels, texts, vectors, images, prior_strength=prior_strength
    )
    centred = texts - texts.mean(0)
    torch.testing.assert_close(
        F.normalize(weight[2], dim=0), F.normalize(centred[2], dim=0), rtol=1e-4, atol=1e-5
    )
    assert level[2] == 0


def test_texts_that_are_all_the_same_say_nothing():
    slopes, levels, texts, vectors = drawn()
    texts = texts[:1].expand(3, -1)
    weight, level = shrink_to_text_prior(
        slopes, levels, texts, vectors, torch.full((3,), 5.0), prior_strength=5.0
    )
    spread = (vectors @ slopes.T + levels).square().mean().sqrt()
    torch.testing.assert_close(weight, slopes / spread / 2, rtol=0.02, atol=0.02)
    torch.testing.assert_close(level, levels / spread / 2)


def test_a_trust_below_0_is_refused():
    slopes, levels, texts, vectors = drawn()
    with pytest.raises(
        ConfigError, match=r"prior_strength, a number of images, must be 0 or more; got -1"
    ):
        shrink_to_text_prior(slopes, levels, texts, vectors, torch.ones(3), prior_strength=-1.0)
