"""CDUL against plain loops."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.pseudolabels import cdul

VIEWS = st.integers(1, 4).flatmap(
    lambda c: st.lists(st.lists(st.floats(-9, 9), min_size=c, max_size=c), min_size=2, max_size=6)
)


def by_hand(views, threshold):
    p = [[1 / (1 + math.exp(-z)) for z in row] for row in views]
    targets = []
    for whole, *parts in zip(*p, strict=True):
        chosen = max(parts) if max(parts) >= threshold else min(parts)
        targets.append((whole + chosen) / 2)
    return targets


@given(VIEWS, st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]))
def test_by_hand(views, threshold):
    found = cdul(torch.tensor([views], dtype=torch.float64), threshold=threshold)
    assert found.tolist() == [pytest.approx(by_hand(views, threshold))]


def test_a_threshold_that_nothing_reaches_takes_the_worst_part():
    views = torch.tensor([[[0.0], [-3.0], [-5.0]]])
    expected = (0.5 + torch.tensor(-5.0).sigmoid()) / 2
    torch.testing.assert_close(cdul(views, threshold=0.1)[0, 0], expected)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan])
def test_a_threshold_outside_its_range_is_refused(threshold):
    with pytest.raises(ConfigError, match=r"threshold must be in \[0, 1\]"):
        cdul(torch.zeros(1, 2), threshold=threshold)
