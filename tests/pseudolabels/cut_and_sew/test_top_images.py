"""Which images are cut out, against loops and on real scores."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError, InputError
from surelabel.pseudolabels import (
    mask_top_images,
    mask_top_images_by_prevalence,
    overlay_candidates_of_top_images,
    square_root_correction,
)

VOC = json.loads((Path(__file__).parents[2] / "golden/tailorclip_pseudolabels.json").read_text())[
    "voc"
]
COLUMNS = st.lists(st.integers(-2, 2), min_size=1, max_size=10)


def by_hand(column, count):
    first = sorted(range(len(column)), key=lambda i: (-column[i], i))[:count]
    return [i in first for i in range(len(column))]


@given(COLUMNS, st.integers(1, 12))
def test_by_hand_with_many_ties(column, count):
    found = mask_top_images(torch.tensor(column).double()[:, None], count=count)
    assert found[:, 0].tolist() == by_hand(column, count)


@given(COLUMNS, st.floats(0, 1), st.floats(0.01, 1))
def test_by_prevalence_by_hand(column, prevalence, share):
    scores = torch.tensor(column).double()[:, None]
    known = torch.tensor([prevalence], dtype=torch.float64)
    found = mask_top_images_by_prevalence(scores, known, share=share)
    count = max(1, round(share * len(column) * prevalence))
    assert found[:, 0].tolist() == by_hand(column, count)


def test_real_images_first_and_fused_scores_choose_differently():
    first, fused = (torch.tensor(VOC[k]) for k in ("first", "fused"))
    by_first, by_fused = mask_top_images(first, count=1), mask_top_images(fused, count=1)
    assert by_first.sum(0).tolist() == by_fused.sum(0).tolist() == [1] * 20
    assert not torch.equal(by_first, by_fused)
    for name in (7, 9, 13):  # cat, cow and motorbike, of which there is one image each
        (row,) = by_first[:, name].nonzero()[:, 0].tolist()
        assert name in VOC["labels"][row]


def test_correcting_all_names_chooses_the_same_images():
    fused = torch.tensor(VOC["fused"])
    assert torch.equal(
        mask_top_images(square_root_correction(fused, top_k=20), count=3),
        mask_top_images(fused, count=3),
    )


def test_the_patch_set_names_each_image_once():
    marked = mask_top_images(torch.tensor([[3.0, 9.0], [2.0, 1.0], [1.0, 8.0]]), count=2)
    assert overlay_candidates_of_top_images(marked).tolist() == [0, 1, 2]
    assert overlay_candidates_of_top_images(marked[:, 1:]).tolist() == [0, 2]


def test_of_ten_images_two_hundred_are_all_of_them():
    assert overlay_candidates_of_top_images(mask_top_images(torch.zeros(10, 3))).tolist() == list(
        range(10)
    )


def test_of_a_thousand_equal_images_the_first_are_taken():
    assert overlay_candidates_of_top_images(
        mask_top_images(torch.zeros(1000, 2), count=3)
    ).tolist() == [0, 1, 2]


def test_a_name_that_nobody_expects_still_gets_one_image():
    marked = mask_top_images_by_prevalence(torch.arange(4.0)[:, None], torch.zeros(1))
    assert marked[:, 0].tolist() == [False, False, False, True]


@pytest.mark.parametrize("count", [0, -1, 2.0, 0.5, True])
def test_what_is_no_count_is_refused(count):
    with pytest.raises(ConfigError, match="count must be a whole number of at least 1"):
        mask_top_images(torch.zeros(2, 2), count=count)


@pytest.mark.parametrize("share", [0.0, 1.1, float("nan")])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ConfigError, match=r"share must be in \(0, 1\]"):
        mask_top_images_by_prevalence(torch.zeros(2, 2), torch.zeros(2), share=share)


@pytest.mark.parametrize("prevalence", [-0.1, 1.5, float("nan")])
def test_a_prevalence_outside_its_range_is_refused(prevalence):
    with pytest.raises(InputError, match=r"prevalence, .* must be in \[0, 1\]"):
        mask_top_images_by_prevalence(torch.zeros(2, 1), torch.tensor([prevalence]))


def test_scores_are_no_marks():
    with pytest.raises(InputError, match="selected must be a boolean mask"):
        overlay_candidates_of_top_images(torch.zeros(2, 2))
