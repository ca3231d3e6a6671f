"""Inversions against loops and the area under the curve."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from surelabel.errors import InputError
from surelabel.pseudolabels import (
    rank_inversions_within_images,
    rank_inversions_within_labels,
    square_root_correction,
)

SCORES = st.integers(-3, 3)
TABLES = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda size: st.lists(
        st.lists(st.tuples(SCORES, st.booleans()), min_size=size[1], max_size=size[1]),
        min_size=size[0],
        max_size=size[0],
    )
)


def by_hand(row):
    return sum(z > x for x, present in row if present for z, other in row if not other)


@given(TABLES)
def test_by_hand_with_many_ties(table):
    scores, targets = torch.tensor(table).double().unbind(dim=2)
    assert rank_inversions_within_images(scores, targets).tolist() == [
        by_hand(row) for row in table
    ]
    columns = list(zip(*table, strict=True))
    assert rank_inversions_within_labels(scores, targets).tolist() == [
        by_hand(row) for row in columns
    ]


def test_it_is_the_area_above_the_curve():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(50, 3, generator=generator)
    targets = (torch.rand(50, 3, generator=generator) < 0.3).double()
    pairs = targets.sum(0) * (1 - targets).sum(0)
    found = rank_inversions_within_labels(scores, targets) / pairs
    expected = [1 - roc_auc_score(targets[:, c], scores[:, c]) for c in range(3)]
    assert found.tolist() == pytest.approx(expected)


def test_the_square_root_keeps_those_within_images_and_may_change_those_within_labels():
    scores = torch.tensor([[0.0, -1.0], [0.5, 1.0]])
    targets = torch.tensor([[0, 1], [1, 0]])
    corrected = square_root_correction(scores)
    assert rank_inversions_within_images(corrected, targets).tolist() == [1, 1]
    assert rank_inversions_within_images(scores, targets).tolist() == [1, 1]
    assert rank_inversions_within_labels(scores, targets).tolist() == [0, 1]
    assert rank_inversions_within_labels(corrected, targets).tolist() == [1, 1]


@pytest.mark.parametrize("count", [rank_inversions_within_images, rank_inversions_within_labels])
def test_graded_targets_are_refused(count):
    with pytest.raises(InputError, match="targets must be 0 or 1"):
        count(torch.zeros(1, 2), torch.tensor([[0.5, 1.0]]))


@pytest.mark.parametrize("count", [rank_inversions_within_images, rank_inversions_within_labels])
def test_shapes_that_differ_are_refused(count):
    with pytest.raises(InputError, match=r"\(1, 2\).*\(2, 2\)"):
        count(torch.zeros(1, 2), torch.zeros(2, 2))
