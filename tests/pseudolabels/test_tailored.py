"""Cutting and correcting in one, step by step."""

import json
from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.pseudolabels import tailored
from surelabel.views import relative_log_odds_of_softmax

VOC = json.loads((Path(__file__).parents[1] / "golden/tailorclip_pseudolabels.json").read_text())[
    "voc"
]


def test_real_images_are_labelled_as_by_the_authors():
    first, tiles = (
        torch.tensor(VOC["first"]),
        relative_log_odds_of_softmax(torch.tensor(VOC["tiles"])),
    )
    found = tailored(torch.stack([first, tiles], dim=1), margin=0.1)
    expected = torch.tensor(VOC["corrected"]).sigmoid()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_without_correction_it_is_the_probability():
    scores = torch.tensor([[2.0, -1.0, 0.0]])
    torch.testing.assert_close(tailored(scores, top_k=0), scores.sigmoid())


def test_the_first_name_gets_the_root_of_its_probability():
    scores = torch.tensor([[2.0, -1.0, 0.0]])
    expected = torch.tensor([[0.880797**0.5, 0.268941, 0.5]])
    torch.testing.assert_close(tailored(scores), expected)


def test_a_part_adds_a_name_and_takes_none_away():
    whole, part = torch.tensor([[3.0, -5.0]]), torch.tensor([[-6.0, 2.0]])
    alone, with_part = tailored(whole), tailored(torch.stack([whole, part], dim=1))
    assert with_part[0, 0] == alone[0, 0]
    assert with_part[0, 1].item() == pytest.approx(torch.tensor(1.0).sigmoid().item())


def test_a_share_is_no_count():
    with pytest.raises(ConfigError, match="top_k must be a whole number"):
        tailored(torch.zeros(1, 2), top_k=1.0)
