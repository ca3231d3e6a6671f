"""Recover and match on the embedded encoder."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.calibration import Platt
from surelabel.errors import ConfigError, InputError, NotConverged
from surelabel.links import LINKS, Sigmoid
from surelabel.losses import binary
from surelabel.methods import RecoverMatch
from surelabel.records import Features
from surelabel.transport import TRANSPORTS

NAMES = ["lion", "guitar", "pizza", "bus"]
TARGETS = torch.tensor([[1.0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
KNOWN = torch.ones(3, 4, dtype=torch.bool)


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def features(backbone):
    """What the encoder makes of three pictures of noise."""
    return backbone.ladder(drawn(3, 3, 96, 96), first=0, depth=3)


def made(backbone, names=NAMES, **settings):
    torch.manual_seed(0)
    return RecoverMatch(backbone, names, **settings).eval()


def cosines(vectors, texts):
    return F.normalize(vectors, dim=-1) @ F.normalize(texts, dim=-1).T


def test_without_anything_learnt_regions_are_the_sum_of_self_aware_attention(backbone, features):
    it = made(backbone, selection=False, prompts=0, transport="average", presence=0.0)
    upper = backbone.upper(3)
    steps = list(upper.steps(features.layers[-4]))
    regions = upper.joint(features.beside + sum(a[:, 1:] for a, _ in steps))
    texts = backbone.deep_texts(NAMES, ["a photo of a {}."], depth=2).vectors()
    local, whole = cosines(regions, texts).mean(1), cosines(features.pooled, texts)
    with torch.no_grad():
        it.log_slopes.copy_(torch.tensor([8.0, 9.0]).log())
        it.levels.copy_(torch.tensor([-5.0, -6.0]))
        expected = (8 * local - 5 + 9 * whole - 6) / 2
        torch.testing.assert_close(it(features), expected, rtol=1e-5, atol=1e-5)


def test_without_self_awareness_regions_are_the_last_tokens_of_the_tower(backbone, features):
    it = made(backbone, self_aware=False, selection=False, prompts=0)
    it.matching = replace(it.matching, transport="average", presence=0.0)
    last = backbone.patches(drawn(3, 3, 96, 96)).patches
    local = cosines(last, it.names.frozen).mean(1)
    with torch.no_grad():
        found = it.learning(features, TARGETS, KNOWN)[0] / backbone.scale
    torch.testing.assert_close(found, local, rtol=1e-4, atol=1e-5)


def test_the_paper_leaves_out_what_is_below_the_last_blocks(backbone, features):
    below = replace(features, beside=features.beside + 10 * drawn(3, 64, 192))
    paper, code = (made(backbone, variant=v, selection=False) for v in ("paper", "code"))
    with torch.no_grad():
        torch.testing.assert_close(paper(below), paper(features))
        assert not torch.allclose(code(below), code(features))


def test_scores_are_the_mean_of_both_heads_of_learning_without_a_teacher(backbone, features):
    it = made(backbone, knowledge=0.0)
    with torch.no_grad():
        heads = it.learning(features, TARGETS, KNOWN)
        assert heads.shape == (2, 3, 4)
        torch.testing.assert_close(heads.mean(0), it(features))


def test_a_teacher_changes_local_scores_of_pictures_with_labels_only(backbone, features):
    plain, taught = made(backbone, knowledge=0.0), made(backbone, knowledge=0.5)
    plain.matching = replace(plain.matching, regularization=0.6)  # the same evenness
    targets = TARGETS.clone()
    targets[1] = 0
    with torch.no_grad():
        without, with_it = (it.learning(features, targets, KNOWN) for it in (plain, taught))
    assert torch.equal(without[1], with_it[1])
    assert not torch.allclose(without[0, 0, 0], with_it[0, 0, 0], rtol=1e-3)
    torch.testing.assert_close(without[0, 1], with_it[0, 1], rtol=1e-4, atol=1e-4)


def test_an_unknown_label_has_no_teacher(backbone, features):
    it = made(backbone, knowledge=0.5)
    with torch.no_grad():
        unknown = it.learning(features, TARGETS, KNOWN & (TARGETS == 0))
        absent = it.learning(features, TARGETS * 0, KNOWN)
    assert torch.equal(unknown, absent)


def test_the_teacher_hears_nothing_of_what_is_learnt(backbone, features):
    it = made(backbone, visual_prompts=2, prompts=4)
    before = it.stream.frozen(features, it.stream.steps(features))
    with torch.no_grad():
        for parameter in it.parameters():
            parameter += 0.1
    assert torch.equal(it.stream.frozen(features, it.stream.steps(features)), before)
    assert torch.equal(it.names.frozen, made(backbone).names.frozen)


def test_gradients_reach_all_that_learns_and_nothing_else(backbone, features):
    it = made(backbone, visual_prompts=2, prompts=4).train()
    heads = it.learning(features, TARGETS, KNOWN)
    binary(heads.flatten(0, 1), TARGETS.repeat(2, 1)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in it.parameters())
    assert not any(p.requires_grad for p in backbone.model.parameters())


def test_prompts_stand_in_the_last_quarter_of_the_text_tower_unless_told_otherwise(backbone):
    assert made(backbone, prompts=4).names.prompts.shape == (1, 4, 128)
    assert made(backbone, text_layers=3, prompts=2).names.prompts.shape == (2, 2, 128)
    assert made(backbone).names.prompts is None


def test_what_is_learnt_serves_any_other_names(backbone, features):
    settings = {"visual_prompts": 1, "prompts": 4}
    it = made(backbone, **settings)
    with torch.no_grad():
        for parameter in it.parameters():
            parameter += 0.05 * drawn(*parameter.shape, seed=parameter.numel())
    names = ["bus", "tram", "fork|spoon", *NAMES[:3]]
    other = made(backbone, names, **settings)
    other.load_state_dict(it.state_dict())
    same = made(backbone, [*NAMES[:3], "fork|spoon", "tram", "bus"], **settings)
    same.load_state_dict(it.state_dict())
    with torch.no_grad():
        found = other(features)
        torch.testing.assert_close(found, same(features)[:, [5, 4, 3, 0, 1, 2]])
    assert found.shape == (3, 6)


def test_global_scores_do_not_change_with_the_list_of_names(backbone, features):
    few = made(backbone, prompts=4)
    many = made(backbone, [*NAMES, *(f"thing {i}" for i in range(996))], prompts=4)
    with torch.no_grad():
        one, other = (
            it.learning(features, it(features) * 0, it(features) > 99) for it in (few, many)
        )
        assert many(features).isfinite().all()
    torch.testing.assert_close(one[1], other[1, :, :4], rtol=1e-4, atol=1e-4)
    assert other.shape == (2, 3, 1000)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("names", [NAMES[:1], NAMES], ids=len)
def test_one_name_or_several_are_scored_and_shown_whatever_the_transport(
    backbone, features, transport, names
):
    it = made(backbone, names, transport=transport)
    with torch.no_grad():
        assert it(features).isfinite().all()
    assert it.maps(features).shape == (3, len(names), 8, 8)
    assert it.maps(features).isfinite().all()


def test_one_name_is_matched_to_where_any_label_is(backbone, features):
    it = made(backbone, NAMES[:1])
    cosines = it.similarities(features)[:, 0]
    expected = cosines * torch.where(cosines > 0, it.presence(features), 1 / 64)
    torch.testing.assert_close(it.maps(features)[:, 0], expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(it.presence(features).sum((1, 2)), torch.ones(3))


def test_maps_are_what_regions_add_and_below_0_never_strongest_where_a_share_is_smallest(
    backbone, features
):
    it = made(backbone, knowledge=0.0)
    with torch.no_grad():
        local = it.learning(features, TARGETS, KNOWN)[0]
    cosines = it.similarities(features)
    shares = it.matching.shares(cosines.flatten(2).transpose(1, 2))
    shares = shares.transpose(1, 2).unflatten(2, (8, 8))
    torch.testing.assert_close(backbone.scale * (shares * cosines).sum((2, 3)), local)
    against = cosines < 0
    assert against.any()
    torch.testing.assert_close(it.maps(features)[~against], (shares * cosines)[~against])
    torch.testing.assert_close(it.maps(features)[against], cosines[against] / 64)


def test_a_picture_of_one_patch_is_scored_and_learnt_from(backbone):
    features = Features(
        pooled=F.normalize(drawn(1, 128), dim=-1),
        grid=(1, 1),
        layers={-4: drawn(1, 2, 192)},
        beside=drawn(1, 1, 192),
    )
    it = made(backbone)
    with torch.no_grad():
        assert it(features).shape == (1, 4)
    assert it.maps(features).shape == (1, 4, 1, 1)
    assert it.train().learning(features, TARGETS[:1], KNOWN[:1]).isfinite().all()


def test_rankings_are_the_mean_of_both_softmaxes(backbone, features):
    it = made(backbone, knowledge=0.0)
    with torch.no_grad():
        heads = it.learning(features, TARGETS, KNOWN)
    expected = (heads[0].softmax(-1) + heads[1].softmax(-1)) / 2
    torch.testing.assert_close(it.ranking(features), expected)


@pytest.mark.parametrize("name", LINKS)
def test_both_heads_begin_at_the_line_nearest_to_where_the_link_wants_them(
    backbone, features, name
):
    it, link = made(backbone, knowledge=0.0), LINKS[name]()
    with torch.no_grad():
        raw = it.learning(features, TARGETS, KNOWN) / backbone.scale
    it.start(features, TARGETS, KNOWN, link)
    with torch.no_grad():
        begun = it.learning(features, TARGETS, KNOWN)
    for cosine, found in zip(raw.numpy(), begun.numpy(), strict=True):
        fitted = Platt().fit(cosine, TARGETS.numpy(), KNOWN.numpy())
        wanted = link.scores(fitted.slope_ * cosine + fitted.shift_)
        slope = max(np.polyfit(cosine.ravel(), wanted.ravel(), 1)[0], 1.0)
        level = wanted.mean() - slope * cosine.mean()
        np.testing.assert_allclose(found, slope * cosine + level, rtol=1e-2, atol=1e-2)


def test_names_are_encoded_once_in_use_and_anew_when_something_changed(backbone, features):
    it = made(backbone, prompts=4)
    with torch.no_grad():
        kept = it.names()
        assert it.names() is kept
        it.train().eval()
        assert it.names() is not kept
        state = it.state_dict()
        state["names.prompts"] = drawn(*state["names.prompts"].shape)
        before = it(features)
        it.load_state_dict(state)
        assert not torch.allclose(it(features), before)


def test_a_copy_learns_on_its_own(backbone, features):
    it = made(backbone)
    other = copy.deepcopy(it)
    with torch.no_grad():
        before = it(features)
        for parameter in other.parameters():
            parameter += 0.1
        other.train().eval()
        assert not torch.allclose(other(features), before)
        assert torch.equal(it(features), before)


def test_half_precision_moves_scores_by_a_thousandth_or_so(backbone, features):
    it = made(backbone)
    with torch.no_grad():
        exact = it(features)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = it(features)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, exact, rtol=0, atol=0.01 * backbone.scale)


def test_plans_that_do_not_converge_are_counted_in_learning_and_refused_in_use(backbone, features):
    it = made(backbone, regularization=2e-4, knowledge=0.0).train()
    assert it.learning(features, TARGETS, KNOWN).isfinite().all()
    with pytest.warns(UserWarning, match=r"\d matchings of regions to labels did not converge"):
        it.eval()
    with pytest.raises(NotConverged, match=r"Raise method\.regularization"), torch.no_grad():
        it(features)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        it.train().eval()


def test_a_step_that_is_too_large_is_told_as_such(backbone, features):
    it = made(backbone).train()
    with torch.no_grad():
        it.stream.adapters[0].widen.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match="no numbers any more"):
        it.learning(features, TARGETS, KNOWN)


def test_pooled_vectors_alone_are_refused(backbone, features):
    with pytest.raises(InputError, match=r"features.layers\[-4\] and features.beside"):
        made(backbone)(Features(features.pooled))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"prompts": -1}, "prompts must be 0 or more"),
        ({"visual_prompts": -1}, "visual_prompts must be 0 or more"),
        ({"text_layers": 0}, "text_layers must be 1 or more. Got 0"),
        ({"variant": "mine"}, 'must be "paper" or "code"'),
        ({"depth": 9}, "depth must be a number of blocks from 1 to 6"),
        ({"first": 6}, "first must be a block from 0 to 5 for this tower. Got 6"),
        ({"first": -1}, "first must be a block from 0 to 5 for this tower. Got -1"),
        ({"knowledge": -1.0}, "knowledge must be 0 or more"),
    ],
)
def test_settings_out_of_range_are_refused(backbone, settings, told):
    with pytest.raises(ConfigError, match=told):
        RecoverMatch(backbone, NAMES, **settings)


def test_a_resnet_is_refused_with_what_to_take():
    with pytest.raises(ConfigError, match="take tiny-vit"):
        RecoverMatch(load_backbone("tiny-rn"), NAMES)


def test_learning_through_both_heads_tells_present_labels_from_absent_ones(backbone, features):
    it = made(backbone)
    it.start(features, TARGETS, KNOWN, Sigmoid())
    it.train()
    optimizer = torch.optim.AdamW(it.parameters(), lr=0.01)
    for _ in range(15):
        optimizer.zero_grad()
        heads = it.learning(features, TARGETS, KNOWN)
        binary(heads.flatten(0, 1), TARGETS.repeat(2, 1)).mean().backward()
        optimizer.step()
    with torch.no_grad():
        scores = it.eval()(features)
    assert scores[TARGETS == 1].min() > scores[TARGETS == 0].max()
