import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.methods.multiple_instance import instance_scorer
from surelabel.methods.multiple_instance.instance_scorer import InstanceScorer

NAMES = ["lion", "guitar", "bus"]
SETTINGS = {"templates": "one", "pooling_temperature": 0.5, "prior_strength": 60.0}


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def learned_scorer(encoder):
    scorer = InstanceScorer(encoder, NAMES, **SETTINGS)
    with torch.no_grad():
        scorer.linear_map += 0.05 * units(1, 128, 128)
        scorer.classes.offsets += 0.3 * units(2, 3, 128)
        scorer.classes.log_slopes += torch.tensor([0.1, -0.2, 0.3])
        scorer.classes.biases += torch.tensor([1.0, 2.0, 3.0])
        scorer.classes.has_positives |= torch.tensor([True, False, True])
        scorer.log_scale.fill_(0.2)
        scorer.log_slope.fill_(-0.4)
        scorer.bias.fill_(-3.0)
    return scorer


@torch.no_grad()
def test_the_score_equals_the_formula_computed_by_loops(encoder):
    scorer, instances = learned_scorer(encoder), units(3, 2, 4, 128)
    tau = encoder.scale * math.exp(0.2)
    for i, image in enumerate(instances):
        for c, is_learned in enumerate([True, False, True]):
            text = scorer.text_scorer.texts[c] + is_learned * scorer.classes.offsets[c]
            compared = []
            for x in image:
                mapped = x + scorer.linear_map @ x
                mapped = mapped / mapped.norm()
                reference = [
                    math.exp(tau * float(mapped @ t)) for t in scorer.text_scorer.reference
                ]
                label = tau * float(mapped @ text / text.norm())
                compared.append(label - math.log(sum(reference) / len(reference)))
            pooled = 0.5 * math.log(sum(math.exp(z / 0.5) for z in compared))
            slope = math.exp(-0.4 + is_learned * float(scorer.classes.log_slopes[c]))
            bias = -3.0 + is_learned * float(scorer.classes.biases[c])
            assert scorer(instances)[i, c].item() == pytest.approx(slope * pooled + bias, abs=2e-3)
            parts = scorer.instance_scores(instances)[i, :, c].tolist()
            assert parts == pytest.approx([slope * z + bias for z in compared], abs=2e-3)


@torch.no_grad()
def test_batches_of_instances_do_not_change_the_scores(encoder, monkeypatch):
    scorer, instances = learned_scorer(encoder), units(3, 5, 4, 128)
    scores = scorer(instances)
    monkeypatch.setattr(instance_scorer, "INSTANCES_PER_BATCH", 9)
    torch.testing.assert_close(scorer(instances), scores)


@torch.no_grad()
def test_a_low_temperature_pools_by_maximum(encoder):
    scorer = InstanceScorer(encoder, NAMES, **{**SETTINGS, "pooling_temperature": 1e-3})
    instances = units(3, 5, 4, 128)
    highest = scorer.instance_scores(instances).amax(dim=1)
    torch.testing.assert_close(scorer(instances), highest, atol=2e-3, rtol=1e-3)


@torch.no_grad()
def test_the_prior_is_divided_by_the_number_of_known_targets(encoder):
    scorer = learned_scorer(encoder)
    assert scorer.prior_loss().item() == 0  # before a fit
    targets = (torch.arange(30) % 3 == 0).float().view(10, 3)
    known = torch.ones(10, 3, dtype=torch.bool)
    known[:, 1] = False
    scorer.initialize(units(3, 10, 4, 128), targets, known, Sigmoid())
    vectors = float(scorer.linear_map.square().sum() + scorer.classes.offsets.square().sum())
    numbers = 0.01 + 0.04 + 0.09 + 1 + 4 + 9
    assert scorer.prior_loss().item() == pytest.approx(60 / 20 * (vectors + numbers / 60), rel=1e-4)
    assert scorer.classes.has_positives.tolist() == [True, False, False]


@pytest.mark.parametrize(
    "setting",
    [{"pooling_temperature": 0.0}, {"prior_strength": -1.0}, {"prior_strength": math.inf}],
)
def test_settings_out_of_range_are_refused(setting, encoder):
    with pytest.raises(ConfigError, match="pooling_temperature must be above 0"):
        InstanceScorer(encoder, NAMES, **{**SETTINGS, **setting})
