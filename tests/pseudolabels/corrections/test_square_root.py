"""The square root against the authors' numbers, plain loops, and what it must keep."""

import json
import math
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError
from surelabel.pseudolabels import square_root_correction
from surelabel.views import max_fusion_with_margin, relative_log_odds_of_softmax

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tailorclip_pseudolabels.json").read_text())
CASES = GOLDEN["correction"]
LIMIT = 13.8155098  # the authors' log-odds of 1e-6
ROWS = st.lists(st.floats(-14, 14, width=32), min_size=2, max_size=8, unique=True)


def by_hand(row, top):
    names = sorted(range(len(row)), key=lambda j: -row[j])[:top]
    roots = [math.sqrt(1 / (1 + math.exp(-z))) for z in row]
    return [math.log(roots[j] / (1 - roots[j])) if j in names else row[j] for j in range(len(row))]


@pytest.mark.parametrize(
    ("case", "top_k", "bottom_k"),
    [
        ("soft_pos1", 1, 0),
        ("soft_pos2", 2, 0),
        ("soft_pos_float1.0_means_all", 6, 0),
        ("soft_pos1_neg1", 1, 1),
        ("identity_pos1", 0, 0),
    ],
)
def test_equals_the_authors_code(case, top_k, bottom_k):
    found = square_root_correction(torch.tensor(CASES["in"]), top_k=top_k, bottom_k=bottom_k)
    expected = torch.tensor(CASES[case])
    torch.testing.assert_close(found.clamp(min=-LIMIT), expected, rtol=0, atol=1e-5)


def test_twice_is_the_fourth_root_as_in_the_authors_code():
    found = square_root_correction(square_root_correction(torch.tensor(CASES["in"])))
    expected = torch.tensor(CASES["soft_pos1_applied_twice"])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_closed_form_equals_the_recorded_one():
    z, g = (torch.tensor(GOLDEN["g_sqrt"][k], dtype=torch.float64) for k in "zg")
    torch.testing.assert_close(square_root_correction(z[:, None])[:, 0], g, rtol=0, atol=1e-7)


def test_real_images_are_corrected_as_by_the_authors():
    first, tiles, fused, expected = (
        torch.tensor(GOLDEN["voc"][k]) for k in ("first", "tiles", "fused", "corrected")
    )
    torch.testing.assert_close(square_root_correction(fused), expected, rtol=0, atol=2e-5)
    again = max_fusion_with_margin(first, relative_log_odds_of_softmax(tiles)[:, None])
    torch.testing.assert_close(square_root_correction(again), expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("case", GOLDEN["resolve_topk"])
def test_a_whole_number_counts_names_and_a_float_is_refused(case):
    top_k, names = literal_eval(case)
    scores = torch.linspace(-3, 2, names)[None]
    if isinstance(top_k, float):
        with pytest.raises(ConfigError, match=r"top_k must be a whole number.*not a fraction"):
            square_root_correction(scores, top_k=top_k)
    else:
        raised = (square_root_correction(scores, top_k=top_k) > scores).sum().item()
        assert raised == GOLDEN["resolve_topk"][case]


@pytest.mark.parametrize("name", ["top_k", "bottom_k"])
@pytest.mark.parametrize("wrong", [True, 1.0, np.float32(1), "1", -1, None, math.nan])
def test_what_is_no_count_is_refused(name, wrong):
    with pytest.raises(ConfigError, match=rf"{name} must be a whole number of at least 0"):
        square_root_correction(torch.zeros(1, 3), **{name: wrong})


def test_a_count_of_numpy_is_a_count():
    scores = torch.tensor([[1.0, 0.0]])
    assert torch.equal(
        square_root_correction(scores, top_k=np.int64(1)), square_root_correction(scores, top_k=1)
    )


@given(ROWS, st.integers(0, 9))
def test_by_hand(row, top_k):
    found = square_root_correction(torch.tensor([row], dtype=torch.float64), top_k=top_k)
    assert found.tolist() == [pytest.approx(by_hand(row, top_k), abs=1e-8)]


@given(st.floats(-1000, 1000), st.sampled_from([torch.float32, torch.float64]))
def test_any_log_odds_stay_finite_and_rise_and_their_square_comes_back(z, dtype):
    z = torch.tensor([[z]], dtype=dtype)
    root = square_root_correction(z)
    assert root.isfinite()
    assert root > z
    back = square_root_correction(root, top_k=0, bottom_k=1)
    torch.testing.assert_close(back, z, rtol=1e-5, atol=1e-5)


def test_the_slope_is_right_and_finite_where_nothing_is_left_of_the_probability():
    z = torch.tensor([[-6.0, 0.3, 5.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: square_root_correction(x, top_k=2, bottom_k=1), z)
    far = torch.tensor([[-900.0, 900.0]], requires_grad=True)
    square_root_correction(far, top_k=2).sum().backward()
    assert far.grad.tolist() == [[pytest.approx(0.5), pytest.approx(1.0)]]


def test_names_at_the_limit_of_the_log_odds_are_not_taken_for_second_names():
    scores = torch.tensor([[3.0, -13.8155, -13.8155, -13.8155]])
    assert torch.equal(square_root_correction(scores, top_k=2)[:, 1:], scores[:, 1:])
    assert square_root_correction(scores, top_k=2)[0, 0] > 3
