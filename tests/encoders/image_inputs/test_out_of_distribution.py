import math

import numpy as np
import pytest
import torch

from surelabel.encoders.image_inputs.out_of_distribution import (
    SET_SIZES,
    fit_ood_detector,
    load_ood_detector,
    save_ood_detector,
)
from surelabel.errors import DataError, InputError


def cloud(count, seed, centre=(5.0, 5.0, 5.0)):
    generator = torch.Generator().manual_seed(seed)
    spread = torch.tensor([3.0, 1.0, 0.5])
    return torch.randn(count, 3, generator=generator) * spread + torch.tensor(centre)


@pytest.fixture(scope="module")
def detector():
    return fit_ood_detector(cloud(5000, 0), [cloud(500, seed) for seed in range(1, 6)])


def test_the_distance_is_the_textbook_one(detector):
    images = cloud(20, 9).numpy().astype(np.float64)
    offset = images.mean(axis=0) - detector.mean.numpy()
    inverse = detector.precision.numpy()
    by_hand = sum(offset[i] * inverse[i, j] * offset[j] for i in range(3) for j in range(3)) ** 0.5
    assert detector.mahalanobis_distance(torch.tensor(images)) == pytest.approx(by_hand)


@pytest.mark.parametrize("size", SET_SIZES)
def test_few_in_distribution_sets_and_all_others_have_a_score_above_one(detector, size):
    own = [detector.ood_score(cloud(size, seed)) for seed in range(100, 400)]
    assert np.mean(np.array(own) > 1) < 0.04
    assert detector.ood_score(cloud(size, 5, centre=(5.0, 5.0, 9.0))) > 1


def test_limits_shrink_with_the_size_of_the_set_and_are_read_in_between(detector):
    assert list(detector.limits) == sorted(detector.limits, reverse=True)
    three = cloud(3, 7)
    limit = detector.mahalanobis_distance(three) / detector.ood_score(three)
    assert detector.limits[2] < limit < detector.limits[1]
    many = cloud(1000, 8)
    assert detector.ood_score(many) == pytest.approx(
        detector.mahalanobis_distance(many) / detector.limits[-1]
    )


def test_the_score_of_an_empty_set_is_nan(detector):
    assert math.isnan(detector.ood_score(torch.zeros(0, 3)))


def test_what_was_stored_comes_back(detector, tmp_path):
    save_ood_detector(detector, "abc", tmp_path / "x.safetensors")
    again = load_ood_detector(tmp_path / "x.safetensors", "abc")
    assert again.ood_score(cloud(9, 3)) == detector.ood_score(cloud(9, 3))
    with pytest.raises(DataError, match="the fingerprint of the weights, abd; got abc"):
        load_ood_detector(tmp_path / "x.safetensors", "abd")


def test_vectors_of_another_width_are_refused(detector):
    with pytest.raises(InputError, match="axes"):
        detector.ood_score(torch.zeros(4, 2))
