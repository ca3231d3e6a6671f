import math

import pytest
import torch

from surelabel.calibration import Platt
from surelabel.links import LINKS, Sigmoid
from surelabel.methods.text_scoring.scale_and_bias import ScaleAndBias, initial_scale_and_bias

TARGETS = (torch.rand(200, 3, generator=torch.Generator().manual_seed(0)) < 0.2).float()
SCORES = 2 * TARGETS + torch.randn(200, 3, generator=torch.Generator().manual_seed(1)) - 1
KNOWN = torch.rand(200, 3, generator=torch.Generator().manual_seed(2)) < 0.9


def test_the_level_is_a_scale_and_a_bias_that_all_labels_share():
    it = ScaleAndBias()
    assert torch.equal(it(SCORES), SCORES)
    with torch.no_grad():
        it.log_slope.fill_(math.log(3.0))
        it.bias.fill_(-1.0)
    torch.testing.assert_close(it(SCORES), 3 * SCORES - 1)


def test_it_starts_at_platt_scaling_of_the_known_targets():
    it = ScaleAndBias()
    it.initialize(SCORES, TARGETS, KNOWN, Sigmoid())
    platt = Platt().fit(SCORES.numpy(), TARGETS.numpy(), KNOWN.numpy())
    expected = torch.as_tensor(platt.logits(SCORES.numpy())).float()
    torch.testing.assert_close(it(SCORES).detach(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", LINKS)
def test_scores_of_every_link_start_near_the_prevalence(name):
    link, known = LINKS[name](), torch.ones_like(KNOWN)
    weak = SCORES - 1.5 * TARGETS
    slope, bias = initial_scale_and_bias(weak, TARGETS, known, link)
    mean = link.log_odds(slope * weak + bias).sigmoid().mean()
    assert mean.item() == pytest.approx(TARGETS.mean().item(), abs=0.03)


def test_scores_of_the_wrong_order_get_the_smallest_scale():
    slope, _ = initial_scale_and_bias(-SCORES, TARGETS, KNOWN, Sigmoid(), min_slope=0.5)
    assert slope.item() == 0.5
