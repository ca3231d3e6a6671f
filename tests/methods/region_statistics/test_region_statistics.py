import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.special import log_softmax

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.features import FeatureCache, add_text_feature_cache
from surelabel.methods import RegionStatistics, TextScorer
from surelabel.records import Features
from surelabel.views import Box

NAMES = ["lion", "guitar", "pizza", "sofa|couch"]
GRID = (2, 3)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return add_text_feature_cache(
        load_encoder("tiny-vit"), FeatureCache(tmp_path_factory.mktemp("texts"))
    )


@pytest.fixture(scope="module")
def texts(encoder):
    return TextScorer(encoder, NAMES).texts


def images(texts, n=40, *, seed=0, grid=GRID, views=True):
    """Patches that each show one name a little, in noise."""
    generator = torch.Generator().manual_seed(seed)
    shown = torch.randint(len(texts), (n, grid[0] * grid[1]), generator=generator)
    noise = torch.randn(*shown.shape, 128, generator=generator) / 12
    return Features(
        pooled=F.normalize(torch.randn(n, 128, generator=generator), dim=-1),
        patches=F.normalize(texts[shown] + noise, dim=-1),
        grid=grid,
        views=F.normalize(torch.randn(n, 1, 128, generator=generator), dim=-1) if views else None,
    )


def learnt(encoder, features, names=NAMES, **settings):
    it = RegionStatistics(encoder, names, **settings)
    it.fit_unlabelled(features)
    return it


def by_hand(
    encoder,
    texts,
    train,
    test,
    *,
    patches_per_label,
    prior_strength,
    patch_logit_scale,
    patch_weight,
):
    """The whole method in loops over numbers."""
    tau, t = encoder.scale, texts.double().numpy()
    p, d = train.patches.shape[1:]
    x = train.patches.double().flatten(0, 1).numpy()
    log_p = log_softmax(tau * x @ t.T, axis=1)
    name, sure = log_p.argmax(1), np.exp(log_p.max(1))
    entropy = -(np.exp(log_p) * log_p).sum(1)
    rows = []
    for c in range(len(t)):
        mine = [i for i in range(len(x)) if name[i] == c]
        rows += sorted(mine, key=lambda i: entropy[i])[:patches_per_label]
    mean = {}
    for c in set(name[rows]):
        mine = [i for i in rows if name[i] == c]
        mean[c] = sum(sure[i] * x[i] for i in mine) / sum(sure[i] for i in mine)
    apart = [x[i] - mean[name[i]] for i in rows]
    sigma = sum(np.outer(a, a) for a in apart) / len(rows)
    a = d / (len(rows) - 1 + d)
    s = np.linalg.inv((1 - a) * sigma + a * np.trace(sigma) / d * np.eye(d))
    z, g = x[rows] @ t.T, np.zeros((len(rows), len(t)))
    for c in mean:
        g[:, c] = x[rows] @ s @ mean[c] - mean[c] @ s @ mean[c] / 2
    found = sorted(mean)
    of_texts = (z - z.mean(1, keepdims=True)).std()
    of_patches = (g[:, found] - g[:, found].mean(1, keepdims=True)).std()
    m = np.array([len({i // p for i in rows if name[i] == c}) for c in range(len(t))])
    k = m / (m + prior_strength)
    scores = []
    for i in range(len(test.pooled)):
        best = np.full(len(t), -np.inf)
        for patch in test.patches[i].double().numpy():
            z, g = patch @ t.T, np.zeros(len(t))
            for c in mean:
                g[c] = patch @ s @ mean[c] - mean[c] @ s @ mean[c] / 2
            g[found] -= g[found].mean()
            h = (1 - k) * (z - z.mean()) / of_texts + k * g / of_patches
            best = np.maximum(best, log_softmax(patch_logit_scale * h))
        seen = test.pooled if test.views is None else test.views[:, 0]
        log_q = log_softmax(tau * seen[i].double().numpy() @ t.T)
        scores.append(patch_weight * best + (1 - patch_weight) * (log_q - np.log1p(-np.exp(log_q))))
    return np.array(scores), m


@pytest.mark.parametrize("views", [True, False])
@pytest.mark.parametrize("prior_strength", [0.0, 20.0])
def test_equals_the_method_in_loops(encoder, texts, views, prior_strength):
    train, test = images(texts), images(texts, 5, seed=1, views=views)
    settings = {
        "patches_per_label": 30,
        "prior_strength": prior_strength,
        "patch_logit_scale": 2.0,
        "patch_weight": 0.7,
    }
    it = learnt(encoder, train, pooling_window=0.0, **settings)
    expected, seen = by_hand(encoder, texts, train, test, **settings)
    np.testing.assert_allclose(it(test).numpy(), expected, rtol=1e-3, atol=1e-3)
    assert it.image_counts.tolist() == seen.tolist()


def test_maps_hold_the_scores_of_the_best_patches(encoder, texts):
    it, test = learnt(encoder, images(texts)), images(texts, 7, seed=1)
    maps = it.heat_maps(test)
    assert maps.shape == (7, 4, 2, 3)
    torch.testing.assert_close(maps.amax(dim=(2, 3)), it.view_scores(test)[:, 1])


def test_finds_what_small_patches_show(encoder, texts):
    it, test = learnt(encoder, images(texts)), images(texts, 1, seed=1)
    test.patches[0] = F.normalize(test.patches[0] + 3 * texts[0], dim=-1)
    test.patches[0, 4] = texts[2]
    assert it.heat_maps(test)[0, 2].flatten().argmax() == 4
    assert sorted(it(test)[0].argsort(descending=True)[:2].tolist()) == [0, 2]


def test_the_whole_is_seen_again_only_where_patches_are_seen_at_another_size(encoder, texts):
    features = images(texts, views=False)
    assert RegionStatistics(encoder, NAMES).image_size == 192
    cut = RegionStatistics(encoder, NAMES).next_views(features)
    assert cut.boxes((90, 60), "") == [Box(0, 0, 90, 60)]
    assert RegionStatistics(encoder, NAMES).next_views(images(texts)) is None
    assert RegionStatistics(encoder, NAMES, image_size=96).next_views(features) is None


def test_learning_a_few_images_at_a_time_is_the_same(encoder, texts, monkeypatch):
    train, test = images(texts), images(texts, 9, seed=1)
    at_once = learnt(encoder, train)(test)
    monkeypatch.setattr("surelabel.methods.region_statistics.region_statistics.IMAGES_PER_BATCH", 3)
    torch.testing.assert_close(learnt(encoder, train)(test), at_once)


def test_names_at_no_patch_keep_their_texts_and_one_warning_counts_them(encoder, texts):
    few = images(texts[:2], 10)
    with pytest.warns(
        UserWarning, match=r"2 of 4 labels have no selected patch in the 10 .*: pizza"
    ) as caught:
        it = learnt(encoder, few, prior_strength=0.0)
    assert [Path(one.filename) for one in caught] == [Path(__file__)], "it names whoever asked"
    alone = F.normalize(texts[2] - texts.mean(0), dim=0)
    torch.testing.assert_close(F.normalize(it.weight[2], dim=0), alone, rtol=1e-4, atol=1e-5)
    assert it(images(texts, 5, seed=1)).isfinite().all()


def test_images_that_are_all_identical_or_blank_give_finite_scores(encoder, texts):
    train, test = images(texts), images(texts, 5, seed=1)
    same = replace(train, patches=train.patches[:1].expand(40, -1, -1))
    blank = replace(train, patches=train.patches[:1, :1].expand(40, 6, -1))
    for features in (same, blank):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            it = learnt(encoder, features)
        assert it(test).isfinite().all()


def test_background_words_take_patches_and_are_no_answer(encoder, texts):
    it = learnt(encoder, images(texts), background=["rose", "pizza"])
    assert it.weight.shape == (5, 128)
    assert it(images(texts, 3)).shape == (3, 4)


def test_refits_learn_from_the_best_patches_of_each_name(encoder, texts):
    train = images(texts)
    once, again = (
        learnt(encoder, train, prior_strength=0.0),
        learnt(encoder, train, prior_strength=0.0, refits=1),
    )
    assert (again.image_counts < once.image_counts).all()
    assert (again.image_counts > 0).all()


def test_what_cannot_work_is_told_at_once(encoder, texts):
    with pytest.raises(
        ConfigError, match=r"needs 3 or more; got 1. .*the method tiles or zero_shot"
    ):
        RegionStatistics(encoder, ["lion"])
    with pytest.raises(ConfigError, match=r"must be in \[0, 1\]; got 0.2 and 1.5"):
        RegionStatistics(encoder, NAMES, patch_weight=1.5)
    with pytest.raises(ConfigError, match=r"patches_per_label=0, refits=0"):
        RegionStatistics(encoder, NAMES, patches_per_label=0)
    with pytest.raises(ConfigError, match="100"):
        RegionStatistics(encoder, NAMES, image_size=100)
    with pytest.raises(NotFitted, match="must be fitted on unlabelled images"):
        RegionStatistics(encoder, NAMES)(images(texts))
    with pytest.raises(InputError, match=r"needs features\.patches and features\.grid"):
        RegionStatistics(encoder, NAMES).fit_unlabelled(Features(texts))
