import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError, InputError
from surelabel.methods.region_statistics.patch_selection import (
    select_high_scoring_patches,
    select_patches,
)

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(rows, st.integers(1, 5))
def test_equals_sorting_each_class_alone(drawn, count):
    classes, entropy = (torch.tensor(column) for column in zip(*drawn, strict=True))
    expected = []
    for c in range(5):
        mine = [i for i in range(len(drawn)) if drawn[i][0] == c]
        expected += sorted(mine, key=lambda i: (drawn[i][1], i))[:count]
    assert select_patches(classes, entropy.float(), count=count).tolist() == sorted(expected)


@given(rows)
def test_the_rest_is_what_is_below_mean_and_deviation_of_its_class(drawn):
    classes, scores = (np.array(column) for column in zip(*drawn, strict=True))
    limit = {
        c: scores[classes == c].mean() + scores[classes == c].std() for c in np.unique(classes)
    }
    expected = [s >= limit[c] - 1e-9 for c, s in zip(classes, scores, strict=True)]
    got = select_high_scoring_patches(torch.tensor(scores).float(), torch.tensor(classes), count=5)
    assert got.tolist() == expected


def test_bad_input_is_refused():
    with pytest.raises(
        ConfigError, match=r"count, the number of patches per class, must be 1 or more; got 0"
    ):
        select_patches(torch.tensor([0]), torch.tensor([0.0]), count=0)
    with pytest.raises(InputError, match="entropy must have axes"):
        select_patches(torch.tensor([0]), torch.zeros(2), count=1)
