"""The variant with a softmax: values by loops over images and captions, and errors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.records import TrainingStep
from surelabel.regularizers import class_covariance, class_covariance_of_softmax

IMAGE_OF_CAPTION = [0, 0, 1, 2, 3, 4, 5, 6, 7]


@pytest.fixture
def pairs():
    """Return a step of eight images and nine captions, two of which describe the first image."""
    generator = torch.Generator().manual_seed(0)
    images, captions = (
        torch.nn.functional.normalize(torch.randn(n, 6, generator=generator).double(), dim=1)
        for n in (8, 9)
    )
    targets = (torch.arange(8)[:, None] == torch.tensor(IMAGE_OF_CAPTION)).double()
    scores = images @ captions.T / 0.2
    return TrainingStep(scores, None, targets, torch.ones_like(targets, dtype=torch.bool), captions)


def covariance_by_loops(step, temperature, min_images, known):
    """Return the regularizer without epsilon, computed with a loop over pairs of captions."""
    exponentials = np.exp(step.scores.numpy() / temperature) * known
    p = exponentials / exponentials.sum(axis=1, keepdims=True)
    negative = (step.targets.numpy() == 0) & known
    texts, errors = step.texts.numpy(), []
    mean = [p[negative[:, j], j].mean() for j in range(9)]
    for i in range(9):
        for j in range(i):
            both = negative[:, i] & negative[:, j]
            if both.sum() < min_images:
                continue
            covariance = ((p[both, i] - mean[i]) * (p[both, j] - mean[j])).sum()
            variances = [((p[negative[:, k], k] - mean[k]) ** 2).sum() for k in (i, j)]
            errors.append((covariance / np.sqrt(np.prod(variances)) - texts[i] @ texts[j]) ** 2)
    return np.mean(errors)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
@pytest.mark.parametrize("min_images", [1, 7])
def test_equals_loops_over_images_and_captions(pairs, temperature, min_images):
    expected = covariance_by_loops(pairs, temperature, min_images, np.ones((8, 9), dtype=bool))
    settings = {"temperature": temperature, "min_images": min_images, "epsilon": 0.0}
    assert class_covariance_of_softmax(pairs, **settings).item() == pytest.approx(expected)


def test_unknown_captions_are_no_part_of_the_softmax(pairs):
    known = torch.rand(8, 9, generator=torch.Generator().manual_seed(1)) > 0.2
    expected = covariance_by_loops(pairs, 1.0, 1, known.numpy())
    got = class_covariance_of_softmax(replace(pairs, known=known), epsilon=0.0, min_images=1)
    assert got.item() == pytest.approx(expected)


def test_a_number_added_to_all_captions_of_an_image_does_not_change_it(pairs):
    moved = replace(pairs, scores=pairs.scores + torch.arange(8)[:, None])
    values = [f(s) for f in (class_covariance_of_softmax, class_covariance) for s in (pairs, moved)]
    assert values[0].item() == pytest.approx(values[1].item())
    assert abs(values[2] - values[3]) > 0.01


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf")])
def test_a_temperature_out_of_range_is_refused(pairs, temperature):
    with pytest.raises(ConfigError, match=r"temperature must be above 0.*1 for no effect"):
        class_covariance_of_softmax(pairs, temperature=temperature)
