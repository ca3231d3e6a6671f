import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from surelabel.errors import ConfigError
from surelabel.links import Focal

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/focal_link.json").read_text())
PHI = {"paper": "phi", "code": "phi_detached"}
GRID = [
    Focal(gamma_pos=pos, gamma_neg=neg, clip=clip, variant=variant)
    for pos, neg, clip, variant in product((0, 1, 2.5), (0, 0.5, 4), (0, 0.05, 0.5), PHI)
]
every = pytest.mark.parametrize("link", GRID, ids=str)
float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def by_hand(q, gamma_pos, gamma_neg, clip, variant):
    """The probability at which a score of sigmoid q is best, from the slopes of both losses."""

    def steepness(z, gamma):
        whole = 1 / (1 - z)
        if variant == "paper" and z > 0:
            whole -= gamma * math.log(1 - z) / z
        return z**gamma * whole

    negative, positive = steepness(max(q - clip, 0), gamma_neg), steepness(1 - q, gamma_pos)
    return negative / (negative + positive)


@every
def test_equals_the_formula(link):
    q = np.array([0.06, 0.2, 0.51, 0.8, 0.97])
    settings = (link.gamma_pos, link.gamma_neg, link.clip, link.variant)
    expected = [by_hand(each, *settings) if each > link.clip else 0 for each in q]
    np.testing.assert_allclose(expit(link.logits(logit(q))), expected, rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("variant", PHI)
def test_equals_the_recorded_probabilities(variant):
    for row in GOLDEN["rows"]:
        link = Focal(
            gamma_pos=row["gamma_pos"], gamma_neg=row["gamma_neg"], clip=row["m"], variant=variant
        )
        found = expit(link.logits(np.array([logit(row["q"])])))
        np.testing.assert_allclose(found, row[PHI[variant]], rtol=1e-9, atol=5e-18)


@pytest.mark.parametrize("variant", PHI)
def test_equals_the_recorded_log_odds_far_out(variant):
    for row in GOLDEN["logodds_without_clip"]:
        link = Focal(
            gamma_pos=row["gamma_pos"], gamma_neg=row["gamma_neg"], clip=0.0, variant=variant
        )
        expected = np.clip(row[f"logit_{PHI[variant]}"], -40, 40)
        np.testing.assert_allclose(link.logits(np.array([row["x"]])), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "point",
    GOLDEN["stationary_points"],
    ids=lambda p: "{gamma_neg}-{gamma_pos}-{clip}-{weights_detached}-{eta}".format(**p),
)
def test_finds_the_share_of_positives_that_the_authors_loss_was_trained_on(point):
    settings = {name: point[name] for name in ("gamma_pos", "gamma_neg", "clip")}
    right, wrong = ("code", "paper") if point["weights_detached"] else ("paper", "code")
    best = np.array([logit(point["stationary_q"])])
    assert expit(Focal(**settings, variant=right).logits(best))[0] == pytest.approx(point["eta"])
    assert expit(Focal(**settings, variant=wrong).logits(best))[0] == pytest.approx(
        point[PHI[wrong]]
    )
    assert expit(best)[0] != pytest.approx(point["eta"], abs=5e-3)


@pytest.mark.parametrize("variant", PHI)
def test_without_focus_or_clip_scores_are_logits(variant):
    link = Focal(gamma_pos=0, gamma_neg=0, clip=0, variant=variant)
    scores = np.linspace(-39, 39, 200)
    np.testing.assert_allclose(link.logits(scores), scores, atol=1e-12)


def test_one_variant_would_not_do_for_the_other():
    assert abs(np.subtract(*(Focal(variant=v).logits(np.zeros(1)) for v in PHI))) > 1


@pytest.mark.parametrize("score", [-59.0, -45.0, 45.0, 59.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_score_far_beyond_the_limits_of_logits_has_a_gradient_of_nought(score, dtype):
    given = torch.tensor([score], dtype=dtype, requires_grad=True)
    Focal(gamma_pos=2.5, gamma_neg=0.5, clip=0.0).logits(given).sum().backward()
    assert given.grad.item() == 0


@pytest.mark.parametrize("link", GRID[:: len(GRID) // 9], ids=str)
@hypothesis_settings(max_examples=30)
@given(scores=st.lists(float32, min_size=2, max_size=8))
def test_every_finite_float32_has_a_finite_logit_in_order(link, scores):
    scores = torch.tensor(sorted(scores), dtype=torch.float32, requires_grad=True)
    logits = link.logits(scores)
    logits.sum().backward()
    assert logits.dtype == torch.float32
    assert (logits.abs() <= 40).all()
    assert (logits.diff() >= -1e-4).all()
    assert scores.grad.isfinite().all()


@every
def test_float32_is_as_good_as_float64(link):
    scores = np.linspace(-59, 59, 1001)
    exact, quick = link.logits(scores), link.logits(scores.astype(np.float32))
    np.testing.assert_allclose(quick, exact, atol=2e-2 if link.clip else 2e-5)


@every
def test_scores_lead_back_to_the_same_logits(link):
    logits = link.logits(np.linspace(-59, 59, 101))
    np.testing.assert_allclose(link.logits(link.scores(logits)), logits, atol=1e-9)


def test_clipped_negatives_tie_and_their_greatest_score_is_given_back():
    link = Focal(clip=0.05)
    corner = logit(0.05)
    assert set(link.logits(np.array([-1e9, -5.0, corner - 1e-9]))) == {-40}
    assert link.logits(np.array([corner + 0.1]))[0] > -40
    assert link.scores(np.array([-40.0]))[0] == pytest.approx(corner, abs=1e-2)


def test_without_focus_on_positives_a_clip_keeps_the_logits_below_a_level():
    link = Focal(gamma_pos=0.0, gamma_neg=4.0, clip=0.05)
    assert expit(link.logits(np.array([1e30])))[0] == pytest.approx(0.963721, abs=1e-6)
    assert link.scores(np.array([30.0]))[0] == 60


def test_without_focus_on_negatives_a_clip_makes_the_logits_jump():
    link, corner = Focal(gamma_neg=0.0, clip=0.05), logit(0.05)
    below, above = link.logits(corner + np.array([-1e-9, 1e-9]))
    assert below == -40
    assert above == pytest.approx(math.log(0.05))  # h of the negatives is 1 there
    assert link.scores(np.array([-10.0]))[0] == pytest.approx(corner)


@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("variant", PHI)
def test_the_gradient_is_right(clip, variant):
    scores = torch.linspace(-2.5, 9, 24, dtype=torch.float64, requires_grad=True)
    link = Focal(gamma_pos=1.0, gamma_neg=3.0, clip=clip, variant=variant)
    assert torch.autograd.gradcheck(link.logits, scores)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma_pos": -1}, "gamma_pos must be .* >= 0.*-1"),
        ({"gamma_neg": float("nan")}, "gamma_neg must be .* finite.*nan"),
        ({"clip": 1.0}, r"clip must be in \[0, 1\).*1"),
        ({"variant": "both"}, '"paper".*"code".*both'),
    ],
)
def test_a_setting_out_of_range_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Focal(**settings)
