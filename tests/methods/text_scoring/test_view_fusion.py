"""An image and its views become one row, whatever the rule."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError, UnknownName
from surelabel.methods import TextScorer
from surelabel.methods.text_scoring.view_fusion import ViewFusion, choose_view_fusion
from surelabel.records import Features
from surelabel.views import FUSIONS

NAMES = ["lion", "guitar", "pizza"]
every = pytest.mark.parametrize("fusion", FUSIONS)


@pytest.fixture(scope="module")
def text_scorer():
    return TextScorer(load_encoder("tiny-vit"), NAMES)


@pytest.fixture(scope="module")
def features(text_scorer):
    drawn = torch.randn(
        4, 6, text_scorer.texts.shape[1], generator=torch.Generator().manual_seed(0)
    )
    vectors = F.normalize(drawn, dim=-1)
    return Features(vectors[:, 0], views=vectors[:, 1:])


@every
def test_whole_and_views_are_worded_alike_and_then_fused(fusion, text_scorer, features):
    expected = FUSIONS[fusion](text_scorer(features.pooled), text_scorer(features.views))
    found = ViewFusion(text_scorer, fusion=fusion, fusion_parameter=None)(features)
    torch.testing.assert_close(found, expected)


def test_scores_of_views_are_those_of_the_whole_and_then_of_each(text_scorer, features):
    found = ViewFusion(text_scorer, fusion="mean", fusion_parameter=None).view_scores(features)
    torch.testing.assert_close(found[:, 0], text_scorer(features.pooled))
    torch.testing.assert_close(found[:, 1:], text_scorer(features.views))


@every
def test_without_views_an_image_is_its_own_view(fusion, text_scorer, features):
    alone = text_scorer(features.pooled)
    found = ViewFusion(text_scorer, fusion=fusion, fusion_parameter=None)(Features(features.pooled))
    torch.testing.assert_close(found, FUSIONS[fusion](alone, alone[:, None]))


@every
def test_where_the_whole_counts_it_may_fill_up_the_views(fusion, text_scorer, features):
    it = ViewFusion(text_scorer, fusion=fusion, fusion_parameter=None, includes_whole=True)
    filler = features.pooled[:, None].expand(-1, 3, -1)
    filled = Features(features.pooled, views=torch.cat([features.views, filler], dim=1))
    torch.testing.assert_close(it(filled), it(features))


@pytest.mark.parametrize(
    ("fusion", "setting"),
    [("mean", "image_weight"), ("max_with_margin", "margin"), ("max_with_dead_band", "dead_band")],
)
def test_the_amount_is_the_one_setting_that_a_fusion_has(fusion, setting):
    scores = torch.tensor([[1.0, -2.0, 0.5]]), torch.tensor([[[0.0, 3.0, 0.7]]])
    assert torch.equal(
        choose_view_fusion(fusion, 0.3)(*scores), FUSIONS[fusion](*scores, **{setting: 0.3})
    )


@every
def test_no_fusion_has_a_second_setting_that_the_amount_would_fill(fusion):
    scores = torch.zeros(1, 3), torch.zeros(1, 2, 3)
    assert choose_view_fusion(fusion, 0.2)(*scores).shape == (1, 3)


def test_an_unknown_fusion_is_answered_with_the_nearest(text_scorer):
    with pytest.raises(UnknownName, match="Did you mean 'max_with_margin'"):
        ViewFusion(text_scorer, fusion="max_with_margins", fusion_parameter=None)


def test_an_amount_out_of_range_is_told_before_any_image_is_read(text_scorer):
    with pytest.raises(InputError, match="image_weight must be in"):
        ViewFusion(text_scorer, fusion="mean", fusion_parameter=1.5)


def test_an_amount_that_is_no_number_is_refused(text_scorer):
    with pytest.raises(ConfigError, match="image_weight must have the type"):
        ViewFusion(text_scorer, fusion="mean", fusion_parameter="half")


@pytest.mark.parametrize("fusion", ["mean_of_centred", "mean_of_standardized"])
def test_a_fusion_within_the_list_is_refused_for_two_names_at_once(fusion):
    text_scorer = TextScorer(load_encoder("tiny-vit"), NAMES[:2])
    with pytest.raises(InputError, match="need 3 labels or more"):
        ViewFusion(text_scorer, fusion=fusion, fusion_parameter=None)
