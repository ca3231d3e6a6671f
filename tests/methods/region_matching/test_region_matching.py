"""Regions matched to labels, against the released code of "Recover and Match" and plain means."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import ConfigError, NotConverged, UnknownName
from surelabel.losses import multi_matching
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.transport import TRANSPORTS

FOLDER = Path(__file__).parents[2] / "golden"
PLANS = json.loads((FOLDER / "transport.json").read_text())["small"]
SMALL = json.loads((FOLDER / "recover_match.json").read_text())["small"]
NAMES = {"train": slice(0, 5), "unseen": slice(5, 8), "all": slice(0, 8)}


def double(values):
    return torch.tensor(values, dtype=torch.float64)


TEXT, LOCAL = double(PLANS["inputs"]["text"]), double(PLANS["inputs"]["local"])
WHOLE = double(SMALL["global"])[:, 0]
TARGETS = double(PLANS["inputs"]["target"])


def cosines(vectors, texts):
    return F.normalize(vectors, dim=-1) @ F.normalize(texts, dim=-1).T


def frozen():
    inputs = PLANS["inputs"]
    return cosines(double(inputs["teacher_local"]), double(inputs["teacher_text"])[:5])


@pytest.fixture
def matching():
    return RegionMatching(logit_scale=SMALL["logit_scale"])


def losses(matching, text, local, whole):
    """Local and global loss of learning; temperatures as released, which count labels in."""
    plan = matching.plan(cosines(local, text), frozen(), TARGETS > 0)
    pooled = matching.pool_similarities(cosines(local, text), plan) / (5 * SMALL["tau_local"])
    every = torch.ones_like(TARGETS, dtype=torch.bool)
    scores = pooled, cosines(whole, text) / SMALL["tau_global"]
    return [multi_matching(z, TARGETS, every) for z in scores]


def test_losses_are_those_of_the_released_code(matching):
    found = losses(matching, TEXT[:5], LOCAL, WHOLE)
    assert found[0].item() == pytest.approx(SMALL["loss_local"], rel=1e-4)
    assert found[1].item() == pytest.approx(SMALL["loss_global"], rel=1e-12)


def test_gradients_are_those_of_the_released_code(matching):
    parts = [part.clone().requires_grad_() for part in (TEXT[:5], LOCAL, WHOLE)]
    sum(losses(matching, *parts)).backward()
    released = SMALL["gradients"]
    expected = (
        double(released["text"])[:5],
        double(released["local_with_cls"])[:, 1:],
        double(released["global"])[:, 0],
    )
    for part, gradient in zip(parts, expected, strict=True):
        scale = gradient.abs().max()
        torch.testing.assert_close(part.grad / scale, gradient / scale, rtol=0, atol=5e-4)


@pytest.mark.parametrize("split", ["unseen", "all"])
def test_rankings_are_those_of_the_released_code(matching, split):
    text = TEXT[NAMES[split]]
    local = matching.pool_similarities(cosines(LOCAL, text)) / (len(text) * SMALL["tau_local"])
    whole = cosines(WHOLE, text) / SMALL["tau_global"]
    found = (local.softmax(-1) + whole.softmax(-1)) / 2
    torch.testing.assert_close(found, double(SMALL[f"{split}_score"]), rtol=0, atol=2e-3)


def similarities(n=3, p=6, c=4, seed=0):
    return torch.rand(n, p, c, generator=torch.Generator().manual_seed(seed)) / 2


def test_average_transport_without_presence_is_the_mean_over_regions():
    matching = RegionMatching(transport="average", presence_scale=0.0)
    torch.testing.assert_close(matching.pool_similarities(similarities()), similarities().mean(1))


def test_average_transport_with_presence_is_the_mean_weighted_by_it():
    matching = RegionMatching(transport="average", presence_scale=10.0)
    weights = (similarities().amax(2) / 0.1).softmax(1)
    expected = torch.einsum("np,npc->nc", weights, similarities())
    torch.testing.assert_close(matching.pool_similarities(similarities()), expected)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_is_pooled_is_a_mean_of_cosines_for_any_number_of_labels(transport):
    for c in (1, 2, 4):
        matching, seen = RegionMatching(transport=transport), similarities(c=c)
        shares = matching.region_shares(seen)
        torch.testing.assert_close(shares.sum(1), torch.ones(3, c), rtol=0, atol=1e-5)
        torch.testing.assert_close(matching.pool_similarities(seen), (shares * seen).sum(1))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_reference_labels_decide_where_other_labels_are_looked_for(transport):
    matching, both = RegionMatching(transport=transport), similarities(c=9)
    fitted, is_new = both[:, :, :4], torch.arange(9) >= 4
    pooled = matching.pool_similarities(both, reference=fitted, is_new=is_new)
    alone = matching.pool_similarities(both[:, :, 6:7], reference=fitted, is_new=is_new[6:7])
    expected = matching.pool_similarities(fitted)
    if matching.needs_all_labels:
        torch.testing.assert_close(pooled, matching.pool_similarities(both))
        assert not torch.allclose(pooled[:, :4], expected)
    else:
        torch.testing.assert_close(pooled[:, :4], expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(pooled[:, 6:7], alone)


def test_only_bipartite_matching_needs_all_labels():
    needing = [t for t in TRANSPORTS if RegionMatching(transport=t).needs_all_labels]
    assert needing == ["bipartite"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_one_region_speaks_for_all_labels(transport):
    seen = similarities(p=1)
    torch.testing.assert_close(
        RegionMatching(transport=transport).pool_similarities(seen), seen[:, 0]
    )


def test_without_a_label_that_is_present_the_teacher_says_nothing(matching):
    nothing = torch.zeros(3, 4, dtype=torch.bool)
    taught = matching.plan(similarities(), similarities(seed=1), nothing).matrix
    softer = RegionMatching(logit_scale=10, regularization=0.15).plan(similarities()).matrix
    torch.testing.assert_close(taught, softer)


def test_a_teacher_draws_a_present_label_to_where_it_sees_it(matching):
    seen, present = similarities(), torch.zeros(3, 4, dtype=torch.bool)
    present[:, 2] = True
    advice = torch.zeros(3, 6, 4)
    advice[:, 5, 2] = 1.0
    drawn = matching.plan(seen, advice, present).matrix[:, 5, 2]
    plain = matching.plan(seen, advice, ~present & present).matrix[:, 5, 2]
    assert (drawn > plain * 1.5).all()


def test_a_plan_that_did_not_converge_is_not_used():
    matching = RegionMatching(regularization=1e-4)
    with pytest.raises(NotConverged, match=r"for 3 of 3 images.*Raise method.regularization"):
        matching.pool_similarities(similarities(p=30, c=9))
    with pytest.raises(NotConverged, match=r"method\.regularization, which is 0\.0001"):
        matching.region_shares(similarities(p=30, c=9))


def test_no_gradient_flows_through_the_plan(matching):
    seen = similarities().requires_grad_()
    matching.pool_similarities(seen).sum().backward()
    torch.testing.assert_close(seen.grad, matching.region_shares(similarities()))


@pytest.mark.parametrize(
    "settings", [{"regularization": 0.0}, {"knowledge_weight": -0.1}, {"presence_scale": -1.0}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        RegionMatching(**settings)


def test_an_unknown_transport_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'sinkhorn'"):
        RegionMatching(transport="sinkhorm")
