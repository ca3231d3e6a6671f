"""Rounds of crops, and when an image is left."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.methods import Crops, ZeroShot
from surelabel.records import Features
from surelabel.views import CropLayout

NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def things(encoder):
    return encoder.encode_labels(NAMES, ["a photo of a {}."])


def noise(encoder, *shape):
    drawn = torch.randn(*shape, encoder.width, generator=torch.Generator().manual_seed(0))
    return F.normalize(drawn, dim=-1)


def test_crops_come_in_rounds_until_there_are_enough(encoder):
    it, pooled = Crops(encoder, NAMES, max_crops=12, crops_per_round=5), noise(encoder, 2)
    asked = [it.next_views(Features(pooled))]
    asked += [it.next_views(Features(pooled, views=noise(encoder, 2, t))) for t in (5, 10, 12)]
    assert asked == [CropLayout(5), CropLayout(5, first=5), CropLayout(2, first=10), None]


def test_seed_and_area_are_those_of_every_round(encoder):
    it = Crops(encoder, NAMES, seed=3, area=(0.2, 0.4))
    later = it.next_views(Features(noise(encoder, 1), views=noise(encoder, 1, 5)))
    assert later == CropLayout(5, first=5, seed=3, area=(0.2, 0.4))


def test_no_crop_at_all_is_zero_shot(encoder):
    it, pooled = Crops(encoder, NAMES, max_crops=0), noise(encoder, 4)
    assert it.next_views(Features(pooled)) is None
    torch.testing.assert_close(it(Features(pooled)), ZeroShot(encoder, NAMES)(Features(pooled)))


def test_a_score_is_the_best_of_whole_and_crops_less_the_margin(encoder):
    vectors, plain = noise(encoder, 3, 6), ZeroShot(encoder, NAMES)
    each = torch.stack([plain(Features(vectors[:, t])) for t in range(6)])
    expected = torch.maximum(each[0], each[1:].amax(0) - 0.1)
    found = Crops(encoder, NAMES)(Features(vectors[:, 0], views=vectors[:, 1:]))
    torch.testing.assert_close(found, expected)


def test_an_image_whose_last_round_showed_nothing_new_is_left(encoder, things):
    lion, guitar, pizza = things
    pooled = torch.stack([lion, lion])
    first = torch.stack([torch.stack([lion, guitar]), torch.stack([lion, guitar])])
    second = torch.stack([torch.stack([guitar, lion]), torch.stack([guitar, pizza])])
    it = Crops(encoder, NAMES, crops_per_round=2, patience=1)
    views = torch.cat([first, second], dim=1)
    assert it.next_views(Features(pooled, views=views)) == [None, CropLayout(2, first=4)]
    assert it.next_views(Features(pooled[:1], views=views[:1])) is None


def test_patience_is_how_many_rounds_must_show_nothing_new(encoder, things):
    lion, guitar, pizza = things
    it = Crops(encoder, NAMES, crops_per_round=1, patience=2)
    seen = [lion, guitar, pizza, lion, guitar]
    moves = [
        it.next_views(Features(lion[None], views=torch.stack(seen[:t])[None])) is not None
        for t in range(1, 6)
    ]
    assert moves == [True, True, True, True, False]


def test_without_patience_no_image_is_left_early(encoder, things):
    views = things[:1].expand(2, 5, -1)
    it = Crops(encoder, NAMES)
    assert it.next_views(Features(things[:2] * 0 + things[:1], views=views)) == CropLayout(
        5, first=5
    )


@pytest.mark.parametrize("fusion", ["max_with_margin", "max_with_dead_band", "mean"])
def test_an_image_that_was_left_scores_as_it_does_alone(fusion, encoder):
    it = Crops(encoder, NAMES, patience=1, fusion=fusion)
    pooled, views = noise(encoder, 2), noise(encoder, 2, 5)
    alone = it(Features(pooled[:1], views=views[:1]))
    filled = torch.cat([views, pooled[:, None].expand(-1, 5, -1)], dim=1)
    torch.testing.assert_close(it(Features(pooled, views=filled))[:1], alone)
    wanted = it.next_views(Features(pooled, views=filled))
    assert wanted is None


def test_a_change_among_tiny_probabilities_is_none(encoder, things):
    lion, guitar, _ = things
    other = F.normalize(lion - guitar, dim=-1)
    features = Features(other[None], views=torch.stack([other, -lion])[None])
    changed = [
        Crops(encoder, NAMES, crops_per_round=1, patience=1, tolerance=tolerance).next_views(
            features
        )
        for tolerance in (1.0, 0.0)
    ]
    assert changed[0] is None
    assert changed[1] is not None


@pytest.mark.parametrize(
    "bad",
    [
        {"max_crops": -1},
        {"crops_per_round": 0},
        {"patience": -1},
        {"tolerance": -0.1},
        {"tolerance": 2.0},
    ],
)
def test_numbers_out_of_range_are_refused(bad, encoder):
    with pytest.raises(ConfigError, match=f"{next(iter(bad))}={next(iter(bad.values()))}"):
        Crops(encoder, NAMES, **bad)


def test_an_area_that_is_none_is_refused(encoder):
    with pytest.raises(InputError, match="area must be two fractions"):
        Crops(encoder, NAMES, area=(0.5, 0.2))


def test_scores_depend_on_other_labels_where_labels_stop_the_crops_or_are_compared(encoder):
    declared = {
        settings: Crops(encoder, NAMES, **dict([settings])).scores_depend_on_other_labels
        for settings in [("patience", 0), ("patience", 1), ("fusion", "mean_of_centred")]
    }
    assert list(declared.values()) == [False, True, True]
