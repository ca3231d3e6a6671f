"""A picture and its views become one row, whatever the rule."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.errors import ConfigError, InputError, UnknownName
from surelabel.methods import Wording
from surelabel.methods.fused import Fused, fusion_of
from surelabel.records import Features
from surelabel.views import FUSIONS

NAMES = ["lion", "guitar", "pizza"]
every = pytest.mark.parametrize("fusion", FUSIONS)


@pytest.fixture(scope="module")
def wording():
    return Wording(load_backbone("tiny-vit"), NAMES)


@pytest.fixture(scope="module")
def features(wording):
    drawn = torch.randn(4, 6, wording.texts.shape[1], generator=torch.Generator().manual_seed(0))
    vectors = F.normalize(drawn, dim=-1)
    return Features(vectors[:, 0], views=vectors[:, 1:])


@every
def test_whole_and_views_are_worded_alike_and_then_fused(fusion, wording, features):
    expected = FUSIONS[fusion](wording(features.pooled), wording(features.views))
    found = Fused(wording, fusion=fusion, amount=None)(features)
    torch.testing.assert_close(found, expected)


def test_scores_of_views_are_those_of_the_whole_and_then_of_each(wording, features):
    found = Fused(wording, fusion="mean", amount=None).of_views(features)
    torch.testing.assert_close(found[:, 0], wording(features.pooled))
    torch.testing.assert_close(found[:, 1:], wording(features.views))


@every
def test_without_views_a_picture_is_its_own_view(fusion, wording, features):
    alone = wording(features.pooled)
    found = Fused(wording, fusion=fusion, amount=None)(Features(features.pooled))
    torch.testing.assert_close(found, FUSIONS[fusion](alone, alone[:, None]))


@every
def test_where_the_whole_counts_it_may_fill_up_the_views(fusion, wording, features):
    it = Fused(wording, fusion=fusion, amount=None, whole_counts=True)
    filler = features.pooled[:, None].expand(-1, 3, -1)
    filled = Features(features.pooled, views=torch.cat([features.views, filler], dim=1))
    torch.testing.assert_close(it(filled), it(features))


@pytest.mark.parametrize(
    ("fusion", "setting"),
    [("mean", "share"), ("max_with_margin", "margin"), ("max_with_dead_band", "dead_band")],
)
def test_the_amount_is_the_one_setting_that_a_fusion_has(fusion, setting):
    scores = torch.tensor([[1.0, -2.0, 0.5]]), torch.tensor([[[0.0, 3.0, 0.7]]])
    assert torch.equal(fusion_of(fusion, 0.3)(*scores), FUSIONS[fusion](*scores, **{setting: 0.3}))


@every
def test_no_fusion_has_a_second_setting_that_the_amount_would_fill(fusion):
    scores = torch.zeros(1, 3), torch.zeros(1, 2, 3)
    assert fusion_of(fusion, 0.2)(*scores).shape == (1, 3)


def test_an_unknown_fusion_is_answered_with_the_nearest(wording):
    with pytest.raises(UnknownName, match="Did you mean 'max_with_margin'"):
        Fused(wording, fusion="max_with_margins", amount=None)


def test_an_amount_out_of_range_is_told_before_any_picture_is_read(wording):
    with pytest.raises(InputError, match="share must be in"):
        Fused(wording, fusion="mean", amount=1.5)


def test_an_amount_that_is_no_number_is_refused(wording):
    with pytest.raises(ConfigError, match="share must be of the kind"):
        Fused(wording, fusion="mean", amount="half")


@pytest.mark.parametrize("fusion", ["mean_of_centred", "mean_of_standardised"])
def test_a_fusion_within_the_list_is_refused_for_two_names_at_once(fusion):
    wording = Wording(load_backbone("tiny-vit"), NAMES[:2])
    with pytest.raises(InputError, match="need 3 names or more"):
        Fused(wording, fusion=fusion, amount=None)
