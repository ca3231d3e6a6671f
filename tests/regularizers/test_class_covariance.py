"""Covariance over negatives: values computed by hand, by numpy, and errors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from surelabel.errors import ConfigError, InputError
from surelabel.records import TrainingStep
from surelabel.regularizers import class_covariance

BY_HAND = {(0, 1): -0.5, (0, 2): -0.426401, (1, 2): 0.852803}
COSINES = {(0, 1): 0.6, (0, 2): 0.3, (1, 2): 0.5}


def test_equals_the_values_computed_by_hand(small):
    expected = np.mean([(BY_HAND[pair] - COSINES[pair]) ** 2 for pair in BY_HAND])
    assert expected == pytest.approx(0.620710, abs=1e-6)
    got = class_covariance(small, epsilon=0.0, min_images=1)
    assert got.item() == pytest.approx(expected, abs=1e-6)


def test_where_all_is_absent_it_is_the_correlation_of_numpy():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 6, generator=generator, dtype=torch.float64)
    texts = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    step = TrainingStep(
        scores, scores, torch.zeros(20, 6), torch.ones(20, 6, dtype=torch.bool), texts
    )
    unit = texts / texts.norm(dim=1, keepdim=True)
    gaps = np.corrcoef(scores.sigmoid().numpy(), rowvar=False) - (unit @ unit.T).numpy()
    expected = (gaps[~np.eye(6, dtype=bool)] ** 2).mean()
    assert class_covariance(step, epsilon=0.0).item() == pytest.approx(expected)


def test_a_pair_absent_together_in_too_few_images_is_left_out(small):
    together = {(0, 1): 2, (0, 2): 3, (1, 2): 3}
    for least in (1, 2, 3, 4):
        left = [pair for pair, count in together.items() if count >= least]
        gaps = [(BY_HAND[pair] - COSINES[pair]) ** 2 for pair in left]
        got = class_covariance(small, epsilon=0.0, min_images=least).item()
        assert got == pytest.approx(np.mean(gaps) if gaps else 0.0, abs=1e-6)


def test_labels_whose_predictions_do_not_vary_count_as_uncorrelated(small):
    flat = torch.full_like(small.scores, -3.0)
    got = class_covariance(replace(small, logits=flat), min_images=1).item()
    assert got == pytest.approx(np.mean([cosine**2 for cosine in COSINES.values()]))


def test_a_gradient_step_reduces_the_difference_to_the_similarity():
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(12, 4, generator=generator).requires_grad_()
    texts = torch.ones(4, 1)
    step = TrainingStep(z, z, torch.zeros(12, 4), torch.ones(12, 4, dtype=torch.bool), texts)
    before = class_covariance(step)
    (gradient,) = torch.autograd.grad(before, z)
    lower = z.detach() - gradient
    assert class_covariance(replace(step, scores=lower, logits=lower)) < before


def test_without_texts_the_error_names_a_remedy(small):
    with pytest.raises(
        InputError, match=r"step\.texts \(c, d\); got None. Use an encoder with a text tower"
    ):
        class_covariance(replace(small, texts=None))


def test_an_unknown_target_is_refused(small):
    with pytest.raises(ConfigError, match=r'"minmax"; got \'cos\''):
        class_covariance(small, similarity="cos")
