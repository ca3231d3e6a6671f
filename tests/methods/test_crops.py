"""Rounds of crops, and when a picture is left."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.errors import ConfigError, InputError
from surelabel.methods import Cropped, ZeroShot
from surelabel.records import Features
from surelabel.views import Crops

NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


@pytest.fixture(scope="module")
def things(backbone):
    return backbone.texts(NAMES, ["a photo of a {}."])


def noise(backbone, *shape):
    drawn = torch.randn(*shape, backbone.width, generator=torch.Generator().manual_seed(0))
    return F.normalize(drawn, dim=-1)


def test_crops_come_in_rounds_until_there_are_enough(backbone):
    it, pooled = Cropped(backbone, NAMES, count=12, at_once=5), noise(backbone, 2)
    asked = [it.cut(Features(pooled))]
    asked += [it.cut(Features(pooled, views=noise(backbone, 2, t))) for t in (5, 10, 12)]
    assert asked == [Crops(5), Crops(5, first=5), Crops(2, first=10), None]


def test_seed_and_area_are_those_of_every_round(backbone):
    it = Cropped(backbone, NAMES, seed=3, area=(0.2, 0.4))
    later = it.cut(Features(noise(backbone, 1), views=noise(backbone, 1, 5)))
    assert later == Crops(5, first=5, seed=3, area=(0.2, 0.4))


def test_no_crop_at_all_is_zero_shot(backbone):
    it, pooled = Cropped(backbone, NAMES, count=0), noise(backbone, 4)
    assert it.cut(Features(pooled)) is None
    torch.testing.assert_close(it(Features(pooled)), ZeroShot(backbone, NAMES)(Features(pooled)))


def test_a_score_is_the_best_of_whole_and_crops_less_the_margin(backbone):
    vectors, plain = noise(backbone, 3, 6), ZeroShot(backbone, NAMES)
    each = torch.stack([plain(Features(vectors[:, t])) for t in range(6)])
    expected = torch.maximum(each[0], each[1:].amax(0) - 0.1)
    found = Cropped(backbone, NAMES)(Features(vectors[:, 0], views=vectors[:, 1:]))
    torch.testing.assert_close(found, expected)


def test_a_picture_whose_last_round_showed_nothing_new_is_left(backbone, things):
    lion, guitar, pizza = things
    pooled = torch.stack([lion, lion])
    first = torch.stack([torch.stack([lion, guitar]), torch.stack([lion, guitar])])
    second = torch.stack([torch.stack([guitar, lion]), torch.stack([guitar, pizza])])
    it = Cropped(backbone, NAMES, at_once=2, patience=1)
    views = torch.cat([first, second], dim=1)
    assert it.cut(Features(pooled, views=views)) == [None, Crops(2, first=4)]
    assert it.cut(Features(pooled[:1], views=views[:1])) is None


def test_patience_is_how_many_rounds_must_show_nothing_new(backbone, things):
    lion, guitar, pizza = things
    it = Cropped(backbone, NAMES, at_once=1, patience=2)
    seen = [lion, guitar, pizza, lion, guitar]
    moves = [
        it.cut(Features(lion[None], views=torch.stack(seen[:t])[None])) is not None
        for t in range(1, 6)
    ]
    assert moves == [True, True, True, True, False]


def test_without_patience_no_picture_is_left_early(backbone, things):
    views = things[:1].expand(2, 5, -1)
    it = Cropped(backbone, NAMES)
    assert it.cut(Features(things[:2] * 0 + things[:1], views=views)) == Crops(5, first=5)


@pytest.mark.parametrize("fusion", ["max_with_margin", "max_with_dead_band", "mean"])
def test_a_picture_that_was_left_scores_as_it_does_alone(fusion, backbone):
    it = Cropped(backbone, NAMES, patience=1, fusion=fusion)
    pooled, views = noise(backbone, 2), noise(backbone, 2, 5)
    alone = it(Features(pooled[:1], views=views[:1]))
    filled = torch.cat([views, pooled[:, None].expand(-1, 5, -1)], dim=1)
    torch.testing.assert_close(it(Features(pooled, views=filled))[:1], alone)
    wanted = it.cut(Features(pooled, views=filled))
    assert wanted is None


def test_a_change_among_tiny_probabilities_is_none(backbone, things):
    lion, guitar, _ = things
    other = F.normalize(lion - guitar, dim=-1)
    features = Features(other[None], views=torch.stack([other, -lion])[None])
    changed = [
        Cropped(backbone, NAMES, at_once=1, patience=1, change=change).cut(features)
        for change in (1.0, 0.0)
    ]
    assert changed[0] is None
    assert changed[1] is not None


@pytest.mark.parametrize(
    "bad", [{"count": -1}, {"at_once": 0}, {"patience": -1}, {"change": -0.1}, {"change": 2.0}]
)
def test_numbers_out_of_range_are_refused(bad, backbone):
    with pytest.raises(ConfigError, match=f"{next(iter(bad))}={next(iter(bad.values()))}"):
        Cropped(backbone, NAMES, **bad)


def test_an_area_that_is_none_is_refused(backbone):
    with pytest.raises(InputError, match="area must be two parts"):
        Cropped(backbone, NAMES, area=(0.5, 0.2))
