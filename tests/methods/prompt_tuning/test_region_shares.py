import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.prompt_tuning.region_shares import RegionShares
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.transport import sinkhorn

FIT_NAMES = ["lion", "guitar", "pizza"]
OTHER_NAMES = ["bus", "pizza", "cow", "lion"]
POSITIVE = torch.tensor([[True, False, False], [False, False, False]])


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


REGIONS = units(0, 2, 5, 128)


def made(encoder, names=FIT_NAMES, **settings):
    """Return shares of labels, and a context that differs from that of the frozen texts."""
    context = LearnedContext(encoder, names, words="a photo of a", length=None).eval()
    with torch.no_grad():
        context.vectors += 0.02 * units(1, 4, 128)
        frozen = encoder.encode_labels(names, ["a photo of a {}."])
    return RegionShares(names, frozen, RegionMatching(**settings)).eval(), context


def plan_by_hand(texts, cost_of_teacher=0.0, regularization=0.1):
    similarities = (REGIONS @ texts.T).detach()
    cost = 1 - (100 * similarities).softmax(2) + cost_of_teacher
    rows = (10 * similarities.amax(2)).softmax(1)
    columns = torch.full((2, len(texts)), 1 / len(texts))
    return sinkhorn(cost, rows, columns, regularization=regularization, max_steps=10_000)


def teacher_cost(frozen_texts, weight):
    probabilities = (100 * REGIONS @ frozen_texts.T).softmax(2)
    logs = (20 * probabilities).log_softmax(1)
    return -weight * torch.where(POSITIVE[:, None], logs, 0.0)


def test_shares_are_the_columns_of_the_transport_plan(encoder):
    shares, context = made(encoder)
    found, expected = shares(REGIONS, context()), 3 * plan_by_hand(context()).matrix
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.sum(1), torch.ones(2, 3))
    assert not found.requires_grad


@pytest.mark.parametrize("weight", [0.0, 0.05, 0.5])
def test_shares_in_training_are_those_with_the_teacher_plan_of_the_frozen_texts(weight, encoder):
    shares, context = made(encoder, knowledge_weight=weight)
    found = shares.training_shares(REGIONS, context(), POSITIVE)
    extra = teacher_cost(shares.frozen_texts, weight)
    expected = 3 * plan_by_hand(context(), extra, 0.1 + weight).matrix
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    without = 3 * plan_by_hand(context(), 0.0, 0.1 + weight).matrix
    assert torch.allclose(found[0, :, 0], without[0, :, 0], atol=1e-3) == (weight == 0)
    torch.testing.assert_close(found[1], without[1], atol=1e-4, rtol=0)  # no positive label


def test_the_plan_of_the_labels_of_the_fit_decides_for_other_labels(encoder):
    fitted, context = made(encoder)
    others, other_context = made(encoder, OTHER_NAMES)
    others.use_fit_labels(FIT_NAMES, other_context)
    assert others.fit_names == FIT_NAMES
    found = others(REGIONS, other_context())
    expected = fitted(REGIONS, context())
    torch.testing.assert_close(found[:, :, [3, 1]], expected[:, :, [0, 2]], atol=1e-4, rtol=0)
    bus, _ = made(encoder, ["bus"])
    bus.use_fit_labels(FIT_NAMES, context)
    alone = bus(REGIONS, other_context()[:1])
    torch.testing.assert_close(alone, found[:, :, :1], atol=1e-4, rtol=0)
    plan = plan_by_hand(context())
    logits = 100 * REGIONS @ torch.cat([context(), other_context()[:1]]).T
    shares_of_bus = (plan.region_potentials + 10 * logits.softmax(2)[:, :, 3]).softmax(1)
    torch.testing.assert_close(found[:, :, 0], shares_of_bus, atol=1e-4, rtol=0)


def test_the_labels_of_the_module_as_labels_of_the_fit_change_nothing(encoder):
    shares, context = made(encoder, OTHER_NAMES)
    before = shares(REGIONS, context())
    shares.use_fit_labels(FIT_NAMES, context)
    assert not torch.allclose(shares(REGIONS, context()), before)
    shares.use_fit_labels(OTHER_NAMES, context)
    assert torch.equal(shares(REGIONS, context()), before)


def test_plans_of_training_that_do_not_converge_are_used_and_counted(encoder):
    shares, context = made(encoder, regularization=1e-5, knowledge_weight=0.0)
    shares.train()
    found = shares.training_shares(REGIONS, context(), POSITIVE)
    assert found.isfinite().all()
    with pytest.warns(UserWarning, match=r"2 transport plans .* did not converge in training"):
        shares.eval()
    shares.eval()


def test_texts_that_are_not_finite_are_refused_with_the_reason(encoder):
    shares, context = made(encoder)
    with pytest.raises(ConfigError, match=r"Training diverged.*smaller learning_rate"):
        shares.training_shares(REGIONS, torch.nan * context(), POSITIVE)
