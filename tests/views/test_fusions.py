import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import InputError
from surelabel.views import (
    max_fusion_with_dead_band,
    max_fusion_with_margin,
    mean_fusion,
    mean_fusion_of_centred,
    mean_fusion_of_standardized,
    relative_log_odds_of_softmax,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/tailorclip_views.json").read_text())
LOG_ODDS = st.floats(-14, 14, width=32)
CASES = st.integers(1, 5).flatmap(
    lambda t: st.tuples(
        st.lists(LOG_ODDS, min_size=3, max_size=3),
        st.lists(st.lists(LOG_ODDS, min_size=3, max_size=3), min_size=t, max_size=t),
    )
)


def both(case):
    return (torch.tensor([x], dtype=torch.float64) for x in case)


def by_hand_margin(z, views, margin):
    for view in views:
        z = [max(a, b - margin) for a, b in zip(z, view, strict=True)]
    return z


def by_hand_dead_band(z, views, band):
    z = list(z)
    for view in views:
        for j, new in enumerate(view):
            old_p, new_p = (1 / (1 + math.exp(-x)) for x in (z[j], new))
            if abs(old_p - new_p) >= band:
                z[j] = max(z[j], new)
    return z


def row_mean(row):
    return sum(row) / len(row)


def by_hand_centred(z, views, image_weight):
    best = [max(v[j] - row_mean(v) for v in views) for j in range(len(z))]
    return [
        image_weight * (a - row_mean(z)) + (1 - image_weight) * b
        for a, b in zip(z, best, strict=True)
    ]


@given(CASES)
def test_the_margin_by_hand(case):
    found = max_fusion_with_margin(*both(case), margin=0.3)
    assert found.tolist() == [pytest.approx(by_hand_margin(*case, 0.3))]


@given(CASES)
def test_the_dead_band_by_hand(case):
    found = max_fusion_with_dead_band(*both(case), dead_band=0.05)
    assert found.tolist() == [pytest.approx(by_hand_dead_band(*case, 0.05))]


@given(CASES)
def test_the_mean_of_centred_by_hand(case):
    found = mean_fusion_of_centred(*both(case), image_weight=0.3)
    assert found.tolist() == [pytest.approx(by_hand_centred(*case, 0.3), abs=1e-9)]


def test_real_images_are_fused_as_the_authors_fuse_them():
    image, tiles, expected = (torch.tensor(GOLDEN["voc"][k]) for k in ("picture", "tiles", "fused"))
    found = max_fusion_with_margin(
        relative_log_odds_of_softmax(image), relative_log_odds_of_softmax(tiles)[:, None]
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)


def test_the_dead_band_depends_on_the_order_of_views_as_in_the_code():
    image = torch.tensor([[-1.0]])
    small_steps = torch.tensor([[[-0.98], [-0.96]]])  # 0.0039 and 0.0079 ahead of it
    assert max_fusion_with_dead_band(image, small_steps).item() == -1
    climb = torch.tensor([[[-0.95], [-0.92]]])  # 0.0099 is too little, 0.0159 is enough
    assert max_fusion_with_dead_band(image, climb).item() == pytest.approx(-0.92)
    assert max_fusion_with_dead_band(
        image, torch.tensor([[[-0.94], [-0.92]]])
    ).item() == pytest.approx(-0.94)


def test_no_margin_and_no_dead_band_are_the_same_maximum():
    image, views = torch.randn(2, 4), torch.randn(2, 3, 4)
    expected = torch.cat([image[:, None], views], dim=1).amax(dim=1)
    assert torch.equal(max_fusion_with_margin(image, views, margin=0), expected)
    assert torch.equal(max_fusion_with_dead_band(image, views, dead_band=0), expected)


@pytest.mark.parametrize("rule", [mean_fusion, mean_fusion_of_centred, mean_fusion_of_standardized])
def test_a_share_of_one_leaves_the_image_alone(rule):
    generator = torch.Generator().manual_seed(0)
    image, views = (
        torch.randn(2, 4, generator=generator),
        torch.randn(2, 3, 4, generator=generator),
    )
    alone = rule(image, views, image_weight=1)
    torch.testing.assert_close(alone, rule(image, -views, image_weight=1))
    assert torch.equal(alone.argsort(), image.argsort())


@pytest.mark.parametrize("rule", [mean_fusion_of_centred, mean_fusion_of_standardized])
def test_means_of_relative_scores_ignore_a_constant_a_view(rule):
    generator = torch.Generator().manual_seed(0)
    image, views = (
        torch.randn(2, 4, generator=generator),
        torch.randn(2, 3, 4, generator=generator),
    )
    shifted = views + torch.tensor([0.0, 5.0, -5.0])[:, None]
    torch.testing.assert_close(rule(image, shifted), rule(image, views))


@pytest.mark.parametrize("rule", [mean_fusion_of_centred, mean_fusion_of_standardized])
def test_relative_scores_of_two_names_are_refused(rule):
    with pytest.raises(InputError, match=r"need 3 labels or more; got 2"):
        rule(torch.zeros(1, 2), torch.zeros(1, 1, 2))


@pytest.mark.parametrize("rule", [mean_fusion, max_fusion_with_margin, max_fusion_with_dead_band])
def test_the_others_take_one_name(rule):
    assert rule(torch.zeros(1, 1), torch.ones(1, 1, 1)).shape == (1, 1)


@pytest.mark.parametrize("dead_band", [-0.1, 1.1, math.nan])
def test_a_dead_band_outside_its_range_is_refused(dead_band):
    with pytest.raises(InputError, match=r"dead_band must be a probability in \[0, 1\]"):
        max_fusion_with_dead_band(torch.zeros(1, 1), torch.zeros(1, 1, 1), dead_band=dead_band)


@pytest.mark.parametrize("rule", [mean_fusion, mean_fusion_of_centred, mean_fusion_of_standardized])
@pytest.mark.parametrize("image_weight", [-0.1, 1.1, math.nan])
def test_a_share_outside_its_range_is_refused(rule, image_weight):
    with pytest.raises(InputError, match=r"image_weight must be in \[0, 1\]"):
        rule(torch.zeros(1, 3), torch.zeros(1, 1, 3), image_weight=image_weight)
