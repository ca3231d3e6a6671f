import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit, softmax
from scipy.stats import zscore

from surelabel.errors import InputError
from surelabel.views import (
    center_relative_scores,
    relative_log_odds_of_softmax,
    standardize_relative_scores,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/tailorclip_views.json").read_text())
RELATIVE = [center_relative_scores, standardize_relative_scores, relative_log_odds_of_softmax]
every = pytest.mark.parametrize("relative", RELATIVE, ids=lambda f: f.__name__)
ROWS = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=9)


def test_log_odds_are_those_of_the_authors():
    cosines = torch.tensor(GOLDEN["first_scores"]["softmax"]).log()
    expected = torch.tensor(GOLDEN["first_scores"]["log_odds"])
    found = relative_log_odds_of_softmax(cosines, scale=1)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)  # theirs rounds 1 - p


def test_log_odds_of_real_images():
    cosines, expected = (torch.tensor(GOLDEN["voc"][k]) for k in ("picture", "log_odds"))
    torch.testing.assert_close(relative_log_odds_of_softmax(cosines), expected, rtol=0, atol=2e-4)


@given(ROWS)
def test_log_odds_against_scipy(row):
    row = np.array(row)
    expected = logit(softmax(5 * row))
    found = relative_log_odds_of_softmax(torch.from_numpy(row), scale=5, min_probability=0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_far_ahead_log_odds_stay_exact_where_the_softmax_rounds_to_one():
    cosines = torch.tensor([[1.0, 0.0, -0.5]])
    found = relative_log_odds_of_softmax(cosines, min_probability=0)
    torch.testing.assert_close(found, torch.tensor([[100.0, -100.0, -150.0]]))


def test_least_keeps_log_odds_inside_its_own():
    found = relative_log_odds_of_softmax(torch.tensor([[1.0, 0.0, -0.5]]), min_probability=1e-3)
    limit = math.log(999)
    torch.testing.assert_close(found, torch.tensor([[limit, -limit, -limit]]))


def test_a_tie_ahead_counts_the_other_one():
    found = relative_log_odds_of_softmax(torch.tensor([[0.5, 0.5, -1.0]]))
    torch.testing.assert_close(found[0, :2], torch.zeros(2))


@given(ROWS)
def test_standardized_is_the_z_score_of_scipy(row):
    row = np.array(row)
    found = standardize_relative_scores(torch.from_numpy(row)).numpy()
    if np.ptp(row) > 1e-6:
        np.testing.assert_allclose(found, zscore(row, ddof=1), rtol=1e-6, atol=1e-6)
    elif np.ptp(row) == 0:
        assert (found == 0).all()


@every
def test_a_constant_a_row_changes_nothing(relative):
    scores = torch.rand(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(relative(scores + 3), relative(scores))


@every
def test_views_and_images_are_treated_alike(relative):
    scores = torch.rand(4, 2, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(relative(scores)[2, 1], relative(scores[2, 1]))


@every
def test_rows_where_all_is_the_same_are_finite_and_all_the_same(relative):
    scores = torch.full((2, 7), 0.1, requires_grad=True)
    found = relative(scores)
    found.sum().backward()
    assert (found == found[0, 0]).all()
    assert found.isfinite().all()
    assert scores.grad.isfinite().all()


@every
def test_half_precision_is_worked_out_in_float32(relative):
    scores = torch.rand(3, 5, generator=torch.Generator().manual_seed(0)).half()
    found = relative(scores)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, relative(scores.float()))


@every
def test_a_thousand_names_take_no_more_memory_than_their_scores(relative):
    found = relative(torch.rand(20, 10, 1000, generator=torch.Generator().manual_seed(0)))
    assert found.isfinite().all()


@every
@pytest.mark.parametrize("names", [0, 1, 2])
def test_fewer_than_three_names_are_refused(relative, names):
    with pytest.raises(InputError, match=rf"need 3 labels or more; got {names}\. Add labels"):
        relative(torch.zeros(4, names))


@every
def test_scores_that_are_no_numbers_are_refused(relative):
    with pytest.raises(InputError, match=r"scores must be finite; got 2 non-finite"):
        relative(torch.tensor([[0.0, math.nan, math.inf]]))


@pytest.mark.parametrize("settings", [{"scale": 0}, {"scale": math.inf}, {"min_probability": 0.5}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(
        InputError, match=r"scale must be above 0 and min_probability in \[0, 0\.5\)"
    ):
        relative_log_odds_of_softmax(torch.zeros(1, 3), **settings)
