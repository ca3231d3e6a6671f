import math

import numpy as np
import pytest
import torch

from surelabel.backbones.familiarity import SIZES, familiarity, load_familiarity, save_familiarity
from surelabel.errors import DataError, InputError


def cloud(count, seed, centre=(5.0, 5.0, 5.0)):
    generator = torch.Generator().manual_seed(seed)
    spread = torch.tensor([3.0, 1.0, 0.5])
    return torch.randn(count, 3, generator=generator) * spread + torch.tensor(centre)


@pytest.fixture(scope="module")
def known():
    return familiarity(cloud(5000, 0), [cloud(500, seed) for seed in range(1, 6)])


def test_the_distance_is_the_textbook_one(known):
    pictures = cloud(20, 9).numpy().astype(np.float64)
    offset = pictures.mean(axis=0) - known.mean.numpy()
    inverse = known.precision.numpy()
    by_hand = sum(offset[i] * inverse[i, j] * offset[j] for i in range(3) for j in range(3)) ** 0.5
    assert known.distance(torch.tensor(pictures)) == pytest.approx(by_hand)


@pytest.mark.parametrize("size", SIZES)
def test_few_sets_of_its_own_world_are_above_one_and_others_are_above_it(known, size):
    own = [known.strangeness(cloud(size, seed)) for seed in range(100, 400)]
    assert np.mean(np.array(own) > 1) < 0.04
    assert known.strangeness(cloud(size, 5, centre=(5.0, 5.0, 9.0))) > 1


def test_limits_shrink_with_the_size_of_the_set_and_are_read_in_between(known):
    assert list(known.limits) == sorted(known.limits, reverse=True)
    three = cloud(3, 7)
    limit = known.distance(three) / known.strangeness(three)
    assert known.limits[2] < limit < known.limits[1]
    many = cloud(1000, 8)
    assert known.strangeness(many) == pytest.approx(known.distance(many) / known.limits[-1])


def test_no_picture_is_neither_strange_nor_familiar(known):
    assert math.isnan(known.strangeness(torch.zeros(0, 3)))


def test_what_was_stored_comes_back(known, tmp_path):
    save_familiarity(known, "abc", tmp_path / "x.safetensors")
    again = load_familiarity(tmp_path / "x.safetensors", "abc")
    assert again.strangeness(cloud(9, 3)) == known.strangeness(cloud(9, 3))
    with pytest.raises(DataError, match="made for weights abc, but the weights here are abd"):
        load_familiarity(tmp_path / "x.safetensors", "abd")


def test_vectors_of_another_width_are_refused(known):
    with pytest.raises(InputError, match="axes"):
        known.strangeness(torch.zeros(4, 2))
