"""Properties of every link in LINKS; new entries are tested without more code."""

import numpy as np
import pytest
import torch

from surelabel.links import LINKS

every = pytest.mark.parametrize("link", [make() for make in LINKS.values()], ids=LINKS.keys())
EXTREMES = [-3.4e38, -1e4, -100.0, -1.0, -1e-38, 0.0, 1.0, 100.0, 1e4, 3.4e38]


@every
def test_arrays_stay_arrays_and_tensors_tensors(link):
    array = np.linspace(-3, 3, 6).reshape(2, 3)
    tensor = torch.from_numpy(array)
    for convert in (link.log_odds, link.logits, link.scores):
        assert isinstance(convert(array), np.ndarray)
        assert convert(array).dtype == np.float64
        assert convert(tensor).dtype == torch.float64
        np.testing.assert_array_equal(convert(array), convert(tensor).numpy())
        assert convert(array).shape == (2, 3)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_logits_and_their_gradient_are_finite_whatever_the_score(link, dtype):
    scores = torch.tensor(EXTREMES, dtype=dtype).clip(-3e38, 3e38).requires_grad_()
    logits = link.logits(scores)
    logits.sum().backward()
    assert (logits.abs() <= 40).all()
    assert scores.grad.isfinite().all()


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_short_floats_are_cast_up_before_anything_is_done(link, dtype):
    values = torch.linspace(-9, 9, 31).to(dtype)
    for convert in (link.log_odds, link.logits, link.scores):
        assert convert(values).dtype == torch.float32
        assert torch.equal(convert(values), convert(values.float()))


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_logits_are_log_odds_within_forty(link, dtype):
    scores = torch.tensor([*EXTREMES, *range(-60, 60)], dtype=dtype).clip(-3e38, 3e38)
    assert torch.equal(link.logits(scores), link.log_odds(scores).clip(-40, 40))
    assert not link.log_odds(scores).isnan().any()


@every
def test_log_odds_of_a_strict_link_rise_with_a_slope_everywhere(link):
    scores = torch.linspace(-500, 500, 2001, dtype=torch.float64, requires_grad=True)
    log_odds = link.log_odds(scores)
    (slope,) = torch.autograd.grad(log_odds.sum(), scores)
    assert ((slope > 0).all() and log_odds.isfinite().all()) or not link.is_strictly_increasing


@every
def test_scores_are_finite_whatever_the_logit(link):
    logits = np.array([-1e30, -100.0, -40.0, 0.0, 40.0, 100.0, 1e30], dtype=np.float32)
    assert np.isfinite(link.scores(logits)).all()
    assert (np.diff(link.scores(logits)) >= 0).all()
    np.testing.assert_allclose(link.scores(logits), link.scores(logits.clip(-40, 40)))


@every
def test_a_greater_score_never_has_a_lesser_logit(link):
    logits = link.logits(np.linspace(-80, 80, 4001))
    assert (np.diff(logits) >= -np.spacing(np.abs(logits[:-1]))).all()  # but by rounding
    assert logits[-1] > logits[0]


@every
def test_logits_lead_to_scores_and_back(link):
    logits = link.logits(np.linspace(-6, 6, 41))
    np.testing.assert_allclose(link.logits(link.scores(logits)), logits, atol=1e-9)


@every
def test_each_element_is_on_its_own(link):
    scores = np.linspace(-9, 9, 12).reshape(3, 4)
    np.testing.assert_array_equal(link.logits(scores)[1:, 2], link.logits(scores[1:, 2]))


@every
def test_what_comes_in_is_left_alone(link):
    scores = np.linspace(-99, 99, 12)
    before = scores.copy()
    link.log_odds(scores)
    link.logits(scores)
    link.scores(scores)
    np.testing.assert_array_equal(scores, before)


@every
def test_links_with_the_same_settings_are_equal(link):
    assert link == type(link)(**vars(link))
