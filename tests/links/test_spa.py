"""The link against the formula, the recorded numbers, and what it is for: the true probability."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit

from surelabel.errors import ConfigError
from surelabel.links import SPA, Sigmoid

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/spa.json").read_text())
SHARES = [0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999]
CASES = pytest.mark.parametrize("case", GOLDEN["cases"], ids=["default", "other"])


def as_printed(link, score):
    """The probability of eq. 17 with the signs of the paper."""
    negative = link.k_neg / link.zeta_neg * expit(-link.k_neg * (score - link.b_neg))
    positive = link.k_pos / link.zeta_pos * expit(link.k_pos * (score - link.b_pos))
    return negative / (negative + positive)


def by_link(link, scores):
    return expit(link.log_odds(scores))


def by_sigmoid(link, scores):
    return expit(Sigmoid().log_odds(scores))


def best_score(link, share):
    """Where the slope of the expected loss vanishes, for a fraction of positives."""

    def slope(score):
        positive = link.k_pos / link.zeta_pos * expit(-link.k_pos * (score - link.b_pos))
        negative = link.k_neg / link.zeta_neg * expit(link.k_neg * (score - link.b_neg))
        return (1 - share) * negative - share * positive

    return brentq(slope, -1e4, 1e4, xtol=1e-15, rtol=9e-16)


def random_links(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        zeta_pos, k_pos, zeta_neg, k_neg = np.exp(rng.normal(size=4))
        b_pos, b_neg = rng.normal(size=2)
        yield SPA(
            zeta_pos=zeta_pos, k_pos=k_pos, b_pos=b_pos, zeta_neg=zeta_neg, k_neg=k_neg, b_neg=b_neg
        )


def gaps(read, links):
    """Largest difference of a link from the true fraction of positives."""
    for link in links:
        best = np.array([best_score(link, share) for share in SHARES])
        yield np.abs(read(link, best) - SHARES).max()


def test_best_scores_are_true_probabilities_whatever_the_settings():
    assert max(gaps(by_link, [SPA(), *random_links(220)])) < 1e-9


@pytest.mark.parametrize("wrong", [as_printed, by_sigmoid])
def test_neither_the_printed_link_nor_the_sigmoid_gives_true_probabilities(wrong):
    assert max(gaps(wrong, [SPA()])) > 0.2
    assert min(gaps(wrong, random_links(40))) > 1e-3


def test_best_scores_equal_the_recorded_ones():
    for row in GOLDEN["strict_properness"]:
        assert best_score(SPA(), row["eta"]) == pytest.approx(row["argmin_v"], abs=1e-12)
        best = np.array([row["argmin_v"]])
        assert by_link(SPA(), best)[0] == pytest.approx(row["eta"], abs=1e-12)
        assert by_sigmoid(SPA(), best)[0] == pytest.approx(row["sigmoid_at_argmin"])
        assert as_printed(SPA(), best)[0] == pytest.approx(row["printed17_at_argmin"])


def test_equals_the_recorded_table():
    scores = torch.tensor([row["v"] for row in GOLDEN["table"]], dtype=torch.float64)
    log_odds = SPA().log_odds(scores.requires_grad_())
    (slope,) = torch.autograd.grad(log_odds.sum(), scores)
    for row, found, steepness in zip(GOLDEN["table"], log_odds, slope, strict=True):
        assert found.item() == pytest.approx(row["log_odds"], rel=1e-14)
        assert found.sigmoid().item() == pytest.approx(row["p"], rel=1e-12)
        assert steepness.item() == pytest.approx(row["dlogodds_dv"], rel=1e-12)
        assert as_printed(SPA(), row["v"]) == pytest.approx(row["p_if_17_read_as_printed"])


@CASES
def test_equals_the_recorded_log_odds_and_logarithms(case):
    log_odds = SPA(**case["params"]).log_odds(torch.tensor(GOLDEN["logits"], dtype=torch.float64))
    for found, recorded in (
        (log_odds, "log_odds"),
        (torch.nn.functional.logsigmoid(log_odds), "log_p"),
        (torch.nn.functional.logsigmoid(-log_odds), "log_1mp"),
    ):
        np.testing.assert_allclose(found, case[recorded], rtol=1e-13)


def test_scores_equal_the_recorded_inverse():
    logits = np.array([logit(row["p"]) for row in GOLDEN["inverse"]])
    expected = [row["v"] for row in GOLDEN["inverse"]]
    np.testing.assert_allclose(SPA().scores(logits), expected, atol=1e-9)


def test_with_no_scale_slope_or_shift_scores_are_log_odds():
    plain = SPA(zeta_neg=1.0, k_neg=1.0, b_neg=0.0)
    scores = np.linspace(-700, 700, 1401)
    np.testing.assert_allclose(plain.log_odds(scores), scores, atol=1e-12)


def test_slopes_far_out_are_those_of_the_two_losses():
    far = SPA().log_odds(np.array([-1001.0, -1000.0, 1000.0, 1001.0]))
    assert far[1] - far[0] == pytest.approx(3)
    assert far[3] - far[2] == pytest.approx(1)


def test_every_float32_has_finite_log_odds_in_order():
    extremes = torch.tensor([-3.4e38, -1e30, -1e4, -1e-38, 0, 1e-38, 1e4, 1e30, 3.4e38])
    for link in (SPA(), SPA(k_pos=1e6, k_neg=1e6), SPA(k_pos=1e-6, k_neg=1e-6)):
        log_odds = link.log_odds(extremes)
        assert log_odds.dtype == torch.float32
        assert log_odds.isfinite().all()
        assert (log_odds.diff() >= 0).all()


scale = st.floats(-6, 6).map(lambda exponent: 10**exponent)
shift = st.floats(-1e6, 1e6)
any_settings = st.fixed_dictionaries(
    {"zeta_pos": scale, "k_pos": scale, "b_pos": shift}
    | {"zeta_neg": scale, "k_neg": scale, "b_neg": shift}
)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@hypothesis_settings(max_examples=150, deadline=None)
@given(chosen=any_settings, logits=st.lists(st.floats(-50, 50), min_size=1, max_size=5))
def test_logits_lead_to_finite_scores_and_back_whatever_the_settings(dtype, chosen, logits):
    link = SPA(**chosen)
    logits = np.array([logits], dtype=dtype)
    scores = link.scores(logits)
    largest = np.abs([*scores[0], link.b_pos, link.b_neg, 1]).max().astype(dtype)
    blur = 8 * (link.k_pos + link.k_neg) * np.spacing(largest) + 200 * np.finfo(dtype).eps
    assert scores.shape == logits.shape
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(link.logits(scores), np.clip(logits, -40, 40), rtol=0, atol=blur)


def test_scores_are_found_where_the_log_odds_are_almost_flat():
    link = SPA(zeta_neg=1.0, k_pos=100.0, b_pos=5.0, k_neg=100.0, b_neg=-5.0)
    level = np.array([-1.0, -1e-9, 0.0, 1e-9, 1.0])
    assert np.ptp(link.logits(np.linspace(-4, 4, 9))) < 1e-12
    np.testing.assert_allclose(link.logits(link.scores(level)), level, atol=1e-12)


def test_a_head_warm_started_from_log_odds_says_what_they_said():
    log_odds = torch.linspace(-20, 20, 81).reshape(9, 9)
    torch.testing.assert_close(SPA().logits(SPA().scores(log_odds)), log_odds)


def test_an_uninformed_head_starts_at_the_prevalence():
    start = SPA().scores(np.array([logit(0.04)]))
    assert start[0] == pytest.approx(-0.0927, abs=1e-4)
    assert expit(SPA().logits(start))[0] == pytest.approx(0.04)


class _Scores(torch.nn.Module):
    """The scores of logits; an exported program does a fixed number of steps."""

    def __init__(self, link):
        super().__init__()
        self.link = link

    def forward(self, logits):
        return self.link.scores(logits)


def test_an_exported_program_converges_to_the_same_scores():
    link = SPA(k_pos=10.0, b_pos=-3.0, k_neg=0.1, zeta_neg=0.1)
    module, n_images = _Scores(link), torch.export.Dim.DYNAMIC
    program = torch.export.export(
        module, (torch.zeros(2, 1),), dynamic_shapes=({0: n_images},), strict=False
    )
    logits = torch.linspace(-45, 45, 901)[:, None]
    torch.testing.assert_close(program.module()(logits), link.scores(logits), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"zeta_neg": 0.0}, "zeta_neg must be in .*got 0.0"),
        ({"k_neg": -3.0}, "k_neg must be in .*got -3.0"),
        ({"k_pos": math.inf}, "k_pos must be in .*got inf"),
        ({"b_neg": math.nan}, "b_neg must be in .*got nan"),
    ],
)
def test_a_setting_out_of_range_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        SPA(**wrong)
