"""The control: the similarities of other labels, by loops over the permutations."""

from itertools import permutations

import pytest
import torch

from surelabel.regularizers import class_covariance, class_covariance_shuffled

BY_HAND = {(0, 1): -0.5, (0, 2): -0.426401, (1, 2): 0.852803}
COSINES = {(0, 1): 0.6, (0, 2): 0.3, (1, 2): 0.5}


def value_of_permutation(order):
    gaps = [(BY_HAND[i, j] - COSINES[tuple(sorted((order[i], order[j])))]) ** 2 for i, j in BY_HAND]
    return sum(gaps) / len(gaps)


def test_each_seed_gives_the_value_of_one_permutation_and_seeds_differ(small):
    expected = [round(value_of_permutation(order), 5) for order in permutations(range(3))]
    got = [
        round(class_covariance_shuffled(small, epsilon=0.0, min_images=1, seed=s).item(), 5)
        for s in range(12)
    ]
    assert set(got) <= set(expected)
    assert len(set(got)) > 2
    again = class_covariance_shuffled(small, epsilon=0.0, min_images=1, seed=3).item()
    assert again == pytest.approx(got[3], abs=1e-5)


def test_every_permutation_is_equally_frequent(small):
    texts = torch.eye(3, dtype=torch.float64)
    texts[0, 1] = 0.5  # only the pair of labels 0 and 1 has a similarity
    pairs = [
        class_covariance_shuffled(
            type(small)(small.scores, small.logits, small.targets, small.known, texts),
            min_images=1,
            seed=seed,
        ).item()
        for seed in range(300)
    ]
    counts = torch.tensor(pairs).mul(1e4).round().unique(return_counts=True)[1]
    assert len(counts) == 3
    assert counts.min() > 70


def test_texts_of_equal_similarity_give_the_value_without_permutation(small):
    texts = torch.eye(3, dtype=torch.float64)
    step = type(small)(small.scores, small.logits, small.targets, small.known, texts)
    values = [f(step, min_images=1) for f in (class_covariance_shuffled, class_covariance)]
    assert values[0].item() == pytest.approx(values[1].item())
    assert values[0] > 0
