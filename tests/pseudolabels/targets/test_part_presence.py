"""What parts show, by hand and in a world whose truth is known."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.calibration import Beta
from surelabel.errors import InputError
from surelabel.metrics import ece, noise_floor
from surelabel.pseudolabels import part_presence_probabilities

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))


def by_hand(names, others):
    """Half-way between the best part and parts that say nothing of each other, as plain loops."""
    found = []
    for parts, rest in zip(names.tolist(), others.tolist(), strict=True):
        best, absent = [0.0] * len(parts[0]), [1.0] * len(parts[0])
        for z, o in zip(parts, rest, strict=True):
            whole = sum(math.exp(v) for v in (*z, *o))
            p = [math.exp(v) / whole for v in z]
            best = [max(b, v) for b, v in zip(best, p, strict=True)]
            absent = [a * (1 - v) for a, v in zip(absent, p, strict=True)]
        found.append([(b + 1 - a) / 2 for b, a in zip(best, absent, strict=True)])
    return torch.tensor(found, dtype=torch.float64)


def drawn(size, seed=0, spread=3.0):
    n, t, c, o = size
    generator = torch.Generator().manual_seed(seed)
    every = spread * torch.randn(n, t, c + o, generator=generator, dtype=torch.float64)
    return every[..., :c], every[..., c:]


@given(SIZES, st.integers(0, 1000))
def test_it_lies_half_way_between_the_best_part_and_independent_parts(size, seed):
    names, others = drawn(size, seed)
    torch.testing.assert_close(part_presence_probabilities(names, others), by_hand(names, others))


@given(SIZES, st.integers(0, 1000))
def test_more_parts_raise_and_more_other_things_lower(size, seed):
    n, t, c, o = size
    names, others = drawn((n, t + 1, c, o + 1), seed)
    least = part_presence_probabilities(names[:, :t], others[:, :t])
    assert (part_presence_probabilities(names, others) >= least - 1e-12).all()
    assert (part_presence_probabilities(names[:, :t], others[:, :t, :o]) >= least - 1e-12).all()


@given(SIZES, st.integers(0, 1000), st.floats(-50, 50))
def test_a_part_that_resembles_everything_more_shows_no_more(size, seed, more):
    names, others = drawn(size, seed)
    moved = part_presence_probabilities(names + more, others + more)
    torch.testing.assert_close(moved, part_presence_probabilities(names, others))


def test_of_one_part_names_share_at_most_one_image():
    found = part_presence_probabilities(*drawn((50, 1, 6, 3)))
    assert (found.sum(dim=1) < 1).all()


def test_without_other_things_one_name_is_everywhere():
    assert torch.equal(
        part_presence_probabilities(torch.randn(5, 2, 1), torch.zeros(5, 2, 0)), torch.ones(5, 1)
    )


def test_similarities_far_apart_are_no_overflow():
    names, others = torch.tensor([[[1e4, -1e4]]]), torch.tensor([[[0.0]]])
    assert part_presence_probabilities(names, others).tolist() == [[1.0, 0.0]]


def test_a_calibrator_that_learns_from_it_is_honest_where_each_part_shows_what_its_softmax_says():
    """Four parts that show one thing each, by their own softmax; scores are a noisy look at all."""
    rng = np.random.default_rng(0)
    names, others = drawn((6000, 4, 20, 60), seed=1, spread=2.5)
    chances = torch.cat([names, others], dim=-1).softmax(dim=-1).numpy()
    thing = (rng.random((6000, 4, 1)) > chances.cumsum(axis=-1)).sum(axis=-1)
    truth = (thing[..., None] == np.arange(20)).any(axis=1).astype(float)
    scores = names.amax(dim=1).numpy() + rng.normal(size=truth.shape)
    targets = part_presence_probabilities(names, others).numpy()
    p = expit(Beta().fit(scores[:3000], targets[:3000]).logits(scores[3000:]))
    assert p.mean() == pytest.approx(truth.mean(), rel=0.1)
    assert ece(p, truth[3000:]) < 0.01
    assert ece(scores[3000:].clip(0, 1), truth[3000:]) > 0.2
    assert noise_floor(ece, p) < 0.01


@pytest.mark.parametrize(
    ("names", "others", "message"),
    [
        (torch.zeros(2, 3, 4), torch.zeros(2, 2, 4), "names .* others"),
        (torch.zeros(2, 3), torch.zeros(2, 3), "axes"),
        (torch.zeros(2, 3, 0), torch.zeros(2, 3, 1), "one label or more"),
        (torch.full((1, 1, 1), torch.nan), torch.zeros(1, 1, 1), "finite"),
        (torch.zeros(1, 1, 1), torch.full((1, 1, 1), torch.inf), "finite"),
    ],
)
def test_what_cannot_be_similarities_is_refused(names, others, message):
    with pytest.raises(InputError, match=message):
        part_presence_probabilities(names, others)
