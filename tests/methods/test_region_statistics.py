import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.special import log_softmax

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache
from surelabel.encoding import remembering
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.methods import RegionStatistics, Wording
from surelabel.records import Features
from surelabel.views import Box

NAMES = ["lion", "guitar", "pizza", "sofa|couch"]
GRID = (2, 3)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return remembering(load_backbone("tiny-vit"), FeatureCache(tmp_path_factory.mktemp("texts")))


@pytest.fixture(scope="module")
def texts(backbone):
    return Wording(backbone, NAMES).texts


def pictures(texts, n=40, *, seed=0, grid=GRID, views=True):
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


def learnt(backbone, features, names=NAMES, **settings):
    it = RegionStatistics(backbone, names, **settings)
    it.learn(features)
    return it


def by_hand(backbone, texts, train, test, *, count, trust, sharpness, share):
    """The whole method in loops over numbers."""
    tau, t = backbone.scale, texts.double().numpy()
    p, d = train.patches.shape[1:]
    x = train.patches.double().flatten(0, 1).numpy()
    log_p = log_softmax(tau * x @ t.T, axis=1)
    name, sure = log_p.argmax(1), np.exp(log_p.max(1))
    entropy = -(np.exp(log_p) * log_p).sum(1)
    rows = []
    for c in range(len(t)):
        mine = [i for i in range(len(x)) if name[i] == c]
        rows += sorted(mine, key=lambda i: entropy[i])[:count]
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
    k = m / (m + trust)
    scores = []
    for i in range(len(test.pooled)):
        best = np.full(len(t), -np.inf)
        for patch in test.patches[i].double().numpy():
            z, g = patch @ t.T, np.zeros(len(t))
            for c in mean:
                g[c] = patch @ s @ mean[c] - mean[c] @ s @ mean[c] / 2
            g[found] -= g[found].mean()
            h = (1 - k) * (z - z.mean()) / of_texts + k * g / of_patches
            best = np.maximum(best, log_softmax(sharpness * h))
        seen = test.pooled if test.views is None else test.views[:, 0]
        log_q = log_softmax(tau * seen[i].double().numpy() @ t.T)
        scores.append(share * best + (1 - share) * (log_q - np.log1p(-np.exp(log_q))))
    return np.array(scores), m


@pytest.mark.parametrize("views", [True, False])
@pytest.mark.parametrize("trust", [0.0, 20.0])
def test_equals_the_method_in_loops(backbone, texts, views, trust):
    train, test = pictures(texts), pictures(texts, 5, seed=1, views=views)
    settings = {"count": 30, "trust": trust, "sharpness": 2.0, "share": 0.7}
    it = learnt(backbone, train, window=0.0, **settings)
    expected, seen = by_hand(backbone, texts, train, test, **settings)
    np.testing.assert_allclose(it(test).numpy(), expected, rtol=1e-3, atol=1e-3)
    assert it.pictures.tolist() == seen.tolist()


def test_maps_hold_the_scores_of_the_best_patches(backbone, texts):
    it, test = learnt(backbone, pictures(texts)), pictures(texts, 7, seed=1)
    maps = it.maps(test)
    assert maps.shape == (7, 4, 2, 3)
    torch.testing.assert_close(maps.amax(dim=(2, 3)), it.of_views(test)[:, 1])


def test_finds_what_small_patches_show(backbone, texts):
    it, test = learnt(backbone, pictures(texts)), pictures(texts, 1, seed=1)
    test.patches[0] = F.normalize(test.patches[0] + 3 * texts[0], dim=-1)
    test.patches[0, 4] = texts[2]
    assert it.maps(test)[0, 2].flatten().argmax() == 4
    assert sorted(it(test)[0].argsort(descending=True)[:2].tolist()) == [0, 2]


def test_the_whole_is_seen_again_only_where_patches_are_seen_at_another_size(backbone, texts):
    features = pictures(texts, views=False)
    assert RegionStatistics(backbone, NAMES).side == 192
    cut = RegionStatistics(backbone, NAMES).cut(features)
    assert cut.boxes((90, 60), "") == [Box(0, 0, 90, 60)]
    assert RegionStatistics(backbone, NAMES).cut(pictures(texts)) is None
    assert RegionStatistics(backbone, NAMES, side=96).cut(features) is None


def test_learning_a_few_pictures_at_a_time_is_the_same(backbone, texts, monkeypatch):
    train, test = pictures(texts), pictures(texts, 9, seed=1)
    at_once = learnt(backbone, train)(test)
    monkeypatch.setattr("surelabel.methods.region_statistics.AT_ONCE", 3)
    torch.testing.assert_close(learnt(backbone, train)(test), at_once)


def test_names_at_no_patch_keep_their_texts_and_one_warning_counts_them(backbone, texts):
    few = pictures(texts[:2], 10)
    with pytest.warns(
        UserWarning, match=r"2 of 4 names come first at no patch of the 10 .*: pizza"
    ) as caught:
        it = learnt(backbone, few, trust=0.0)
    assert [Path(one.filename) for one in caught] == [Path(__file__)], "it names whoever asked"
    alone = F.normalize(texts[2] - texts.mean(0), dim=0)
    torch.testing.assert_close(F.normalize(it.weight[2], dim=0), alone, rtol=1e-4, atol=1e-5)
    assert it(pictures(texts, 5, seed=1)).isfinite().all()


def test_pictures_that_are_all_identical_or_blank_give_finite_scores(backbone, texts):
    train, test = pictures(texts), pictures(texts, 5, seed=1)
    same = replace(train, patches=train.patches[:1].expand(40, -1, -1))
    blank = replace(train, patches=train.patches[:1, :1].expand(40, 6, -1))
    for features in (same, blank):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            it = learnt(backbone, features)
        assert it(test).isfinite().all()


def test_background_words_take_patches_and_are_no_answer(backbone, texts):
    it = learnt(backbone, pictures(texts), background=["rose", "pizza"])
    assert it.weight.shape == (5, 128)
    assert it(pictures(texts, 3)).shape == (3, 4)


def test_refits_learn_from_the_best_patches_of_each_name(backbone, texts):
    train = pictures(texts)
    once, again = learnt(backbone, train, trust=0.0), learnt(backbone, train, trust=0.0, refits=1)
    assert (again.pictures < once.pictures).all()
    assert (again.pictures > 0).all()


def test_what_cannot_work_is_told_at_once(backbone, texts):
    with pytest.raises(ConfigError, match=r"needs 3 or more. Got 1; .*tiles or zero_shot"):
        RegionStatistics(backbone, ["lion"])
    with pytest.raises(ConfigError, match=r"shares in \[0, 1\]. Got 0.2 and 1.5"):
        RegionStatistics(backbone, NAMES, share=1.5)
    with pytest.raises(ConfigError, match=r"count=0, trust=20.0"):
        RegionStatistics(backbone, NAMES, count=0)
    with pytest.raises(ConfigError, match="100"):
        RegionStatistics(backbone, NAMES, side=100)
    with pytest.raises(NotFitted, match="has to see unlabelled pictures"):
        RegionStatistics(backbone, NAMES)(pictures(texts))
    with pytest.raises(InputError, match="needs patches and their grid"):
        RegionStatistics(backbone, NAMES).learn(Features(texts))
