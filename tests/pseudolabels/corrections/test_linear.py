"""Linear correction against the authors' numbers and plain loops."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.pseudolabels import linear_correction

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tailorclip_pseudolabels.json").read_text())
CASES = GOLDEN["correction"]


def test_equals_the_authors_code():
    found = linear_correction(torch.tensor(CASES["in"]), floor=0.1)
    expected = torch.tensor(CASES["linear_pos1_alpha0.1"])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@given(st.floats(-12, 12), st.floats(0, 0.99))
def test_by_hand(z, floor):
    p = floor + (1 - floor) / (1 + math.exp(-z))
    found = linear_correction(torch.tensor([[z]], dtype=torch.float64), floor=floor)
    assert found.item() == pytest.approx(math.log(p / (1 - p)), abs=1e-8)


def test_no_floor_changes_nothing():
    scores = torch.tensor([[1.0, 700.0, -700.0]])
    assert torch.equal(linear_correction(scores, top_k=3, floor=0), scores)


@pytest.mark.parametrize("z", [-1000.0, -90.0, 90.0, 1000.0])
def test_far_out_it_is_the_floor_or_a_constant_more(z):
    found = linear_correction(torch.tensor([[z]]), floor=0.2).item()
    assert found == pytest.approx(math.log(0.25) if z < 0 else z - math.log(0.8))


@pytest.mark.parametrize("floor", [-0.1, 1.0, math.nan])
def test_a_floor_outside_its_range_is_refused(floor):
    with pytest.raises(ConfigError, match=r"floor must be in \[0, 1\)"):
        linear_correction(torch.zeros(1, 2), floor=floor)
