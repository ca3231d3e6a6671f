"""A head with its link inside serves the same probabilities through any sigmoid."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from torch import nn

from surelabel.errors import ConfigError, InputError
from surelabel.links import (
    LINKS,
    SPA,
    Focal,
    Sigmoid,
    fold_link,
    score_threshold,
    sigmoid_threshold,
)

every = pytest.mark.parametrize("link", [make() for make in LINKS.values()], ids=LINKS.keys())


@pytest.fixture
def head():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.fixture
def features():
    return 5 * torch.randn(6, 4, generator=torch.Generator().manual_seed(1))


@every
def test_a_plain_sigmoid_gives_the_probabilities_of_the_link(link, head, features):
    folded = fold_link(head, link)
    assert torch.equal(folded(features), link.logits(head(features)))
    assert folded.link == Sigmoid()
    assert folded.folded_link == link


@every
def test_it_is_exported_with_its_link(link, head, features):
    batch = torch.export.Dim("batch")
    program = torch.export.export(
        fold_link(head, link).eval(), (features,), dynamic_shapes=[{0: batch}]
    )
    torch.testing.assert_close(program.module()(features[:5]), link.logits(head(features[:5])))


def test_the_parameters_are_those_of_the_head_and_come_back(head, features):
    folded = fold_link(head, SPA())
    state = folded.state_dict()
    assert state.keys() == {f"head.{name}" for name in head.state_dict()}
    other = fold_link(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), SPA())
    other.load_state_dict(state)
    assert torch.equal(other(features), folded(features))


def test_half_precision_is_cast_up_before_the_link(features):
    head = nn.Linear(4, 3).to(torch.bfloat16)
    logits = fold_link(head, SPA())(features.to(torch.bfloat16))
    assert logits.dtype == torch.float32


def test_folding_twice_is_refused(head):
    folded = fold_link(head, SPA())
    with pytest.raises(ConfigError, match="a head with a folded link"):
        fold_link(folded, SPA())
    with pytest.raises(ConfigError, match="a head with a folded link"):
        fold_link(nn.Sequential(nn.Identity(), folded), Sigmoid())


@every
@pytest.mark.parametrize("probability", [0.02, 0.3, 0.5, 0.9])
def test_a_threshold_on_scores_chooses_what_one_on_probabilities_does(link, probability):
    scores = np.linspace(-12, 12, 997)
    wanted = expit(link.logits(scores)) >= probability
    np.testing.assert_array_equal(scores >= score_threshold(link, probability), wanted)
    np.testing.assert_array_equal(expit(scores) >= sigmoid_threshold(link, probability), wanted)


def test_half_is_a_sigmoid_of_072_with_the_default_settings():
    assert score_threshold(SPA(), 0.5) == pytest.approx(0.952070, abs=1e-6)
    assert sigmoid_threshold(SPA(), 0.5) == pytest.approx(0.7215, abs=1e-4)
    assert sigmoid_threshold(Sigmoid(), 0.3) == pytest.approx(0.3)


def test_a_probability_that_no_score_has_lets_nothing_through():
    link = Focal(gamma_pos=0.0, gamma_neg=4.0, clip=0.05)
    assert expit(link.logits(np.array([50.0])))[0] < 0.97
    assert score_threshold(link, 0.97) == 60
    assert score_threshold(link, expit(logit(0.5))) < 5


@pytest.mark.parametrize("probability", [0.0, 1.0, 1.3, float("nan")])
def test_a_probability_that_no_logit_has_is_refused(probability):
    with pytest.raises(InputError, match=f"between 0 and 1.*got {probability}"):
        score_threshold(SPA(), probability)
