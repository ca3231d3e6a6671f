"""Recover and match on the embedded encoder."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from surelabel.calibration import Platt
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError, NotConverged
from surelabel.links import LINKS, Sigmoid
from surelabel.losses import binary
from surelabel.methods import RecoverMatch, copy_method_fit
from surelabel.records import Features
from surelabel.transport import TRANSPORTS

NAMES = ["lion", "guitar", "pizza", "bus"]
TARGETS = torch.tensor([[1.0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
KNOWN = torch.ones(3, 4, dtype=torch.bool)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def features(encoder):
    """What the encoder makes of three images of noise."""
    return encoder.encode_ladder_features(drawn(3, 3, 96, 96), first_block=0, depth=3)


def made(encoder, names=NAMES, **settings):
    torch.manual_seed(0)
    return RecoverMatch(encoder, names, **settings).eval()


def cosines(vectors, texts):
    return F.normalize(vectors, dim=-1) @ F.normalize(texts, dim=-1).T


def test_without_anything_learnt_regions_are_the_sum_of_self_aware_attention(encoder, features):
    it = made(
        encoder,
        text_guided_selection=False,
        text_prompts=0,
        transport="average",
        presence_scale=0.0,
    )
    upper = encoder.last_blocks(3)
    steps = list(upper.run_blocks(features.layers[-4]))
    regions = upper.project(features.self_aware_sum + sum(a[:, 1:] for a, _ in steps))
    texts = encoder.deep_prompt_text_encoder(NAMES, ["a photo of a {}."], depth=2).encode()
    local, whole = cosines(regions, texts).mean(1), cosines(features.pooled, texts)
    with torch.no_grad():
        it.log_slopes.copy_(torch.tensor([8.0, 9.0]).log())
        it.biases.copy_(torch.tensor([-5.0, -6.0]))
        expected = (8 * local - 5 + 9 * whole - 6) / 2
        torch.testing.assert_close(it(features), expected, rtol=1e-5, atol=1e-5)


def test_without_self_awareness_regions_are_the_last_tokens_of_the_tower(encoder, features):
    it = made(encoder, self_aware=False, text_guided_selection=False, text_prompts=0)
    it.matching = replace(it.matching, transport="average", presence_scale=0.0)
    last = encoder.encode_patches(drawn(3, 3, 96, 96)).patches
    local = cosines(last, it.prompted_labels.frozen).mean(1)
    with torch.no_grad():
        found = it.training_scores(features, TARGETS, KNOWN)[0] / encoder.scale
    torch.testing.assert_close(found, local, rtol=1e-4, atol=1e-5)


def test_the_paper_leaves_out_what_is_below_the_last_blocks(encoder, features):
    below = replace(features, self_aware_sum=features.self_aware_sum + 10 * drawn(3, 64, 192))
    paper, code = (made(encoder, variant=v, text_guided_selection=False) for v in ("paper", "code"))
    with torch.no_grad():
        torch.testing.assert_close(paper(below), paper(features))
        assert not torch.allclose(code(below), code(features))


def test_scores_are_the_mean_of_both_heads_of_learning_without_a_teacher(encoder, features):
    it = made(encoder, knowledge_weight=0.0)
    with torch.no_grad():
        heads = it.training_scores(features, TARGETS, KNOWN)
        assert heads.shape == (2, 3, 4)
        torch.testing.assert_close(heads.mean(0), it(features))


def test_a_teacher_changes_local_scores_of_images_with_labels_only(encoder, features):
    plain, taught = made(encoder, knowledge_weight=0.0), made(encoder, knowledge_weight=0.5)
    plain.matching = replace(plain.matching, regularization=0.6)  # the same evenness
    targets = TARGETS.clone()
    targets[1] = 0
    with torch.no_grad():
        without, with_it = (it.training_scores(features, targets, KNOWN) for it in (plain, taught))
    assert torch.equal(without[1], with_it[1])
    assert not torch.allclose(without[0, 0, 0], with_it[0, 0, 0], rtol=1e-3)
    torch.testing.assert_close(without[0, 1], with_it[0, 1], rtol=1e-4, atol=1e-4)


def test_an_unknown_label_has_no_teacher(encoder, features):
    it = made(encoder, knowledge_weight=0.5)
    with torch.no_grad():
        unknown = it.training_scores(features, TARGETS, KNOWN & (TARGETS == 0))
        absent = it.training_scores(features, TARGETS * 0, KNOWN)
    assert torch.equal(unknown, absent)


def test_the_teacher_hears_nothing_of_what_is_learnt(encoder, features):
    it = made(encoder, visual_prompts=2, text_prompts=4)
    before = it.local_adapter.frozen_region_vectors(features, it.local_adapter.run_blocks(features))
    with torch.no_grad():
        for parameter in it.parameters():
            parameter += 0.1
    assert torch.equal(
        it.local_adapter.frozen_region_vectors(features, it.local_adapter.run_blocks(features)),
        before,
    )
    assert torch.equal(it.prompted_labels.frozen, made(encoder).prompted_labels.frozen)


def test_gradients_reach_all_that_learns_and_nothing_else(encoder, features):
    it = made(encoder, visual_prompts=2, text_prompts=4).train()
    heads = it.training_scores(features, TARGETS, KNOWN)
    binary(heads.flatten(0, 1), TARGETS.repeat(2, 1)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in it.parameters())
    assert not any(p.requires_grad for p in encoder.model.parameters())


def test_prompts_stand_in_the_last_quarter_of_the_text_tower_unless_told_otherwise(encoder):
    assert made(encoder, text_prompts=4).prompted_labels.prompts.shape == (1, 4, 128)
    assert made(encoder, text_prompt_layers=3, text_prompts=2).prompted_labels.prompts.shape == (
        2,
        2,
        128,
    )
    assert made(encoder).prompted_labels.prompts is None


def test_what_is_learnt_serves_any_other_names(encoder, features):
    settings = {"visual_prompts": 1, "text_prompts": 4}
    it = made(encoder, **settings)
    with torch.no_grad():
        for parameter in it.parameters():
            parameter += 0.05 * drawn(*parameter.shape, seed=parameter.numel())
    names = ["bus", "tram", "fork|spoon", *NAMES[:3]]
    other = made(encoder, names, **settings)
    other.load_state_dict(it.state_dict())
    same = made(encoder, [*NAMES[:3], "fork|spoon", "tram", "bus"], **settings)
    same.load_state_dict(it.state_dict())
    with torch.no_grad():
        found = other(features)
        torch.testing.assert_close(found, same(features)[:, [5, 4, 3, 0, 1, 2]])
    assert found.shape == (3, 6)


def test_other_labels_are_scored_maps_included_by_what_the_labels_of_the_fit_decide(
    encoder, features
):
    settings = {"visual_prompts": 1, "text_prompts": 4}
    it = made(encoder, **settings)
    with torch.no_grad():
        for parameter in it.parameters():
            parameter += 0.05 * drawn(*parameter.shape, seed=parameter.numel())
    few, many = (
        made(encoder, names, **settings)
        for names in (["tram", "guitar"], ["bus", "guitar", *(f"thing {i}" for i in range(40))])
    )
    for other in (few, many):
        copy_method_fit(it, other, encoder)
        assert (other.fit_names, other.scores_depend_on_other_labels) == (NAMES, False)
        torch.testing.assert_close(other.presence_maps(features), it.presence_maps(features))
        with torch.no_grad():
            torch.testing.assert_close(other(features)[:, 1], it(features)[:, 1])
        torch.testing.assert_close(
            other.heat_maps(features)[:, 1], it.heat_maps(features)[:, 1], rtol=1e-4, atol=1e-6
        )


def test_fit_labels_are_those_of_a_method_until_others_are_given_and_survive_a_second_copy(encoder):
    first, second, third = (made(encoder, names) for names in (NAMES, ["tram"], ["fork"]))
    assert (first.fit_names, first.fit_texts) == (NAMES, None)
    copy_method_fit(first, second, encoder)
    copy_method_fit(second, third, encoder)
    assert third.fit_names == NAMES
    torch.testing.assert_close(third.fit_texts, first.prompted_labels.frozen)


def test_global_scores_do_not_change_with_the_list_of_names(encoder, features):
    few = made(encoder, text_prompts=4)
    many = made(encoder, [*NAMES, *(f"thing {i}" for i in range(996))], text_prompts=4)
    with torch.no_grad():
        one, other = (
            it.training_scores(features, it(features) * 0, it(features) > 99) for it in (few, many)
        )
        assert many(features).isfinite().all()
    torch.testing.assert_close(one[1], other[1, :, :4], rtol=1e-4, atol=1e-4)
    assert other.shape == (2, 3, 1000)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("names", [NAMES[:1], NAMES], ids=len)
def test_one_name_or_several_are_scored_and_shown_whatever_the_transport(
    encoder, features, transport, names
):
    it = made(encoder, names, transport=transport)
    with torch.no_grad():
        assert it(features).isfinite().all()
    assert it.heat_maps(features).shape == (3, len(names), 8, 8)
    assert it.heat_maps(features).isfinite().all()


def test_one_name_is_matched_to_where_any_label_is(encoder, features):
    it = made(encoder, NAMES[:1])
    cosines = it.similarity_maps(features)[:, 0]
    expected = cosines * torch.where(cosines > 0, it.presence_maps(features), 1 / 64)
    torch.testing.assert_close(it.heat_maps(features)[:, 0], expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(it.presence_maps(features).sum((1, 2)), torch.ones(3))


def test_maps_are_what_regions_add_and_below_0_never_strongest_where_a_share_is_smallest(
    encoder, features
):
    it = made(encoder, knowledge_weight=0.0)
    with torch.no_grad():
        local = it.training_scores(features, TARGETS, KNOWN)[0]
    cosines = it.similarity_maps(features)
    shares = it.matching.region_shares(cosines.flatten(2).transpose(1, 2))
    shares = shares.transpose(1, 2).unflatten(2, (8, 8))
    torch.testing.assert_close(encoder.scale * (shares * cosines).sum((2, 3)), local)
    against = cosines < 0
    assert against.any()
    torch.testing.assert_close(it.heat_maps(features)[~against], (shares * cosines)[~against])
    torch.testing.assert_close(it.heat_maps(features)[against], cosines[against] / 64)


def test_an_image_of_one_patch_is_scored_and_learnt_from(encoder):
    features = Features(
        pooled=F.normalize(drawn(1, 128), dim=-1),
        grid=(1, 1),
        layers={-4: drawn(1, 2, 192)},
        self_aware_sum=drawn(1, 1, 192),
    )
    it = made(encoder)
    with torch.no_grad():
        assert it(features).shape == (1, 4)
    assert it.heat_maps(features).shape == (1, 4, 1, 1)
    assert it.train().training_scores(features, TARGETS[:1], KNOWN[:1]).isfinite().all()


def test_rankings_are_the_mean_of_both_softmaxes(encoder, features):
    it = made(encoder, knowledge_weight=0.0)
    with torch.no_grad():
        heads = it.training_scores(features, TARGETS, KNOWN)
    expected = (heads[0].softmax(-1) + heads[1].softmax(-1)) / 2
    torch.testing.assert_close(it.ranking_scores(features), expected)


@pytest.mark.parametrize("name", LINKS)
def test_both_heads_begin_at_the_line_nearest_to_where_the_link_wants_them(encoder, features, name):
    it, link = made(encoder, knowledge_weight=0.0), LINKS[name]()
    with torch.no_grad():
        raw = it.training_scores(features, TARGETS, KNOWN) / encoder.scale
    it.initialize(features, TARGETS, KNOWN, link)
    with torch.no_grad():
        begun = it.training_scores(features, TARGETS, KNOWN)
    for cosine, found in zip(raw.numpy(), begun.numpy(), strict=True):
        fitted = Platt().fit(cosine, TARGETS.numpy(), KNOWN.numpy())
        wanted = link.scores(fitted.slope_ * cosine + fitted.shift_)
        slope = max(np.polyfit(cosine.ravel(), wanted.ravel(), 1)[0], 1.0)
        level = wanted.mean() - slope * cosine.mean()
        np.testing.assert_allclose(found, slope * cosine + level, rtol=1e-2, atol=1e-2)


def test_names_are_encoded_once_in_use_and_anew_when_something_changed(encoder, features):
    it = made(encoder, text_prompts=4)
    with torch.no_grad():
        kept = it.prompted_labels()
        assert it.prompted_labels() is kept
        it.train().eval()
        assert it.prompted_labels() is not kept
        state = it.state_dict()
        state["prompted_labels.prompts"] = drawn(*state["prompted_labels.prompts"].shape)
        before = it(features)
        it.load_state_dict(state)
        assert not torch.allclose(it(features), before)


def test_a_copy_learns_on_its_own(encoder, features):
    it = made(encoder)
    other = copy.deepcopy(it)
    with torch.no_grad():
        before = it(features)
        for parameter in other.parameters():
            parameter += 0.1
        other.train().eval()
        assert not torch.allclose(other(features), before)
        assert torch.equal(it(features), before)


def test_half_precision_moves_scores_by_a_thousandth_or_so(encoder, features):
    it = made(encoder)
    with torch.no_grad():
        exact = it(features)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = it(features)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, exact, rtol=0, atol=0.01 * encoder.scale)


def test_plans_that_do_not_converge_are_counted_in_learning_and_refused_in_use(encoder, features):
    it = made(encoder, regularization=2e-4, knowledge_weight=0.0).train()
    assert it.training_scores(features, TARGETS, KNOWN).isfinite().all()
    with pytest.warns(
        UserWarning, match=r"\d transport plans? of regions and labels did not converge"
    ):
        it.eval()
    with pytest.raises(NotConverged, match=r"Raise method\.regularization"), torch.no_grad():
        it(features)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        it.train().eval()


def test_a_step_that_is_too_large_is_told_as_such(encoder, features):
    it = made(encoder).train()
    with torch.no_grad():
        it.local_adapter.selections[0].up_conv.weight.fill_(torch.nan)
    with pytest.raises(ConfigError, match="cosines of regions and labels are not finite"):
        it.training_scores(features, TARGETS, KNOWN)


def test_pooled_vectors_alone_are_refused(encoder, features):
    with pytest.raises(InputError, match=r"features.layers\[-4\] and features.self_aware_sum"):
        made(encoder)(Features(features.pooled))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"text_prompts": -1}, "text_prompts must be 0 or more"),
        ({"visual_prompts": -1}, "visual_prompts must be 0 or more"),
        ({"text_prompt_layers": 0}, "text_prompt_layers must be 1 or more; got 0"),
        ({"variant": "mine"}, 'must be "paper" or "code"'),
        ({"depth": 9}, "depth must be a number of blocks from 1 to 6"),
        (
            {"first_block": 6},
            "first_block must be the index of a block from 0 to 5 for this tower; got 6",
        ),
        (
            {"first_block": -1},
            "first_block must be the index of a block from 0 to 5 for this tower; got -1",
        ),
        ({"knowledge_weight": -1.0}, "knowledge_weight must be 0 or more"),
    ],
)
def test_settings_out_of_range_are_refused(encoder, settings, told):
    with pytest.raises(ConfigError, match=told):
        RecoverMatch(encoder, NAMES, **settings)


def test_a_resnet_is_refused_with_what_to_take():
    with pytest.raises(ConfigError, match="Use tiny-vit"):
        RecoverMatch(load_encoder("tiny-rn"), NAMES)


def test_learning_through_both_heads_tells_present_labels_from_absent_ones(encoder, features):
    it = made(encoder)
    it.initialize(features, TARGETS, KNOWN, Sigmoid())
    it.train()
    optimizer = torch.optim.AdamW(it.parameters(), lr=0.01)
    for _ in range(15):
        optimizer.zero_grad()
        heads = it.training_scores(features, TARGETS, KNOWN)
        binary(heads.flatten(0, 1), TARGETS.repeat(2, 1)).mean().backward()
        optimizer.step()
    with torch.no_grad():
        scores = it.eval()(features)
    assert scores[TARGETS == 1].min() > scores[TARGETS == 0].max()
