"""CCD against plain loops."""

import math

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.pseudolabels import ccd


def softmax_log_odds(*shape, sharpness=3.0):
    generator = torch.Generator().manual_seed(0)
    scores = sharpness * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return scores.softmax(dim=-1).logit()


def by_hand(p, parts, floor, limit, image_weight):
    names = range(len(p[0]))
    bias = []
    for j in names:
        sure = [
            row[j]
            for row in p
            if max(row) == row[j] and -sum(x * math.log(x) for x in row) <= limit
        ]
        bias.append(sum(sure) / len(sure) if sure else 1.0)
    targets = [[min(max(row[j], floor) / bias[j], 1) for j in names] for row in p]
    if parts is None:
        return targets
    best = [[max(view[j] for view in views) for j in names] for views in parts]
    return [
        [
            min(image_weight * y[j] + (1 - image_weight) * max(b[j], floor) / bias[j], 1)
            for j in names
        ]
        for y, b in zip(targets, best, strict=True)
    ]


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
@pytest.mark.parametrize(("floor", "limit", "image_weight"), [(0.05, 2.0, 0.2), (0.2, 0.8, 0.0)])
def test_by_hand(parts, sharpness, floor, limit, image_weight):
    scores = softmax_log_odds(30, 4, 8, sharpness=sharpness)
    p = scores.sigmoid().tolist()
    whole, others = [views[0] for views in p], [views[1:] for views in p] if parts else None
    found = ccd(
        scores if parts else scores[:, 0],
        floor=floor,
        entropy_limit=limit,
        image_weight=image_weight,
    )
    expected = torch.tensor(by_hand(whole, others, floor, limit, image_weight), dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_a_name_that_comes_first_nowhere_is_not_divided():
    p = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]])
    assert ccd(p.logit())[:, 1:].tolist() == [pytest.approx([0.2, 0.1]), pytest.approx([0.3, 0.1])]


def test_unclear_images_say_nothing_about_sureness():
    clear, unclear = torch.tensor([[0.9, 0.05, 0.05]]), torch.tensor([[0.34, 0.33, 0.33]])
    both = torch.cat([clear, unclear]).logit()
    assert ccd(both, entropy_limit=1.0)[1, 0].item() == pytest.approx(0.34 / 0.9)
    assert ccd(both, entropy_limit=2.0)[1, 0].item() == pytest.approx(0.34 / 0.62)


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [("floor", 1.0), ("floor", -0.1), ("image_weight", 1.5), ("entropy_limit", -1.0)],
)
def test_a_setting_outside_its_range_is_refused(setting, wrong):
    with pytest.raises(ConfigError, match=f"{setting} must be in"):
        ccd(torch.zeros(1, 2), **{setting: wrong})
