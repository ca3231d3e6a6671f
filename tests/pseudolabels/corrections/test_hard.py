"""Correction by decree against the authors' numbers."""

import json
import math
from pathlib import Path

import pytest
import torch

from surelabel.pseudolabels import hard_correction

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tailorclip_pseudolabels.json").read_text())
CASES = GOLDEN["correction"]


@pytest.mark.parametrize(("case", "bottom"), [("hard_pos", 0), ("hard_pos_neg", 1)])
def test_equals_the_authors_code(case, bottom):
    found = hard_correction(torch.tensor(CASES["in"]), bottom_k=bottom)
    torch.testing.assert_close(found, torch.tensor(CASES[case]), rtol=0, atol=1e-5)


def test_it_may_turn_the_order_round():
    found = hard_correction(torch.tensor([[6.0, 5.0, 0.0]]))
    assert found[0, 1] > found[0, 0]


def test_again_changes_nothing_where_the_others_lie_between():
    scores = torch.tensor([[0.3, -1.0, 2.0, 1.0]])
    assert torch.equal(hard_correction(hard_correction(scores)), hard_correction(scores))


def test_a_single_name_is_present():
    assert hard_correction(torch.tensor([[-7.0]])).item() == pytest.approx(math.log(19))
