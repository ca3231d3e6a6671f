import json
from pathlib import Path

import pytest
import torch

from surelabel.errors import InputError
from surelabel.methods.variational.generalized_pooling import GeneralizedPooling

RECORDED = json.loads((Path(__file__).parents[2] / "golden/variational.json").read_text())
GOLDEN = RECORDED["gpo"]


@pytest.fixture
def pooling():
    pooling = GeneralizedPooling(position_width=4, hidden_width=3).double()
    state = {name: torch.tensor(value) for name, value in GOLDEN["state_dict"].items()}
    pooling.load_state_dict(state)
    return pooling.requires_grad_(False)


@pytest.fixture
def vectors():
    return torch.tensor(GOLDEN["features"], dtype=torch.float64)


@pytest.fixture
def mask():
    return torch.arange(5) < torch.tensor(GOLDEN["lengths"])[:, None]


def test_weights_and_pooled_vectors_equal_those_of_the_authors(pooling, vectors, mask):
    weights = pooling.rank_weights(GOLDEN["lengths"])
    for row, recorded in zip(weights, GOLDEN["weights_own_float64"], strict=True):
        assert row[: len(recorded)].tolist() == pytest.approx(recorded, abs=1e-7)
        assert not row[len(recorded) :].any()
    pooled = pooling(vectors, mask)
    official = torch.tensor(GOLDEN["pooled_official"], dtype=torch.float64)
    torch.testing.assert_close(pooled, official, rtol=0, atol=GOLDEN["tolerance"])
    own = torch.tensor(GOLDEN["pooled_own_float64"], dtype=torch.float64)
    torch.testing.assert_close(pooled, own, rtol=0, atol=1e-7)


def test_rank_embeddings_equal_the_recorded_ones(pooling):
    recorded = torch.tensor(GOLDEN["positional_encoding_float64"], dtype=torch.float64)
    torch.testing.assert_close(pooling.rank_embeddings(5), recorded, rtol=0, atol=1e-7)


def test_padding_and_its_values_do_not_change_the_result(pooling, vectors, mask):
    changed = vectors.masked_fill(~mask[..., None], 99.0)
    assert torch.equal(pooling(changed, mask), pooling(vectors, mask))
    alone = pooling(vectors[1:, :3])
    torch.testing.assert_close(alone, pooling(vectors, mask)[1:])


def test_the_order_of_the_vectors_does_not_change_the_result(pooling, vectors):
    torch.testing.assert_close(pooling(vectors.flip(1)), pooling(vectors))


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_max_and_mean_pooling_are_special_cases(kind, pooling, monkeypatch):
    simple = GOLDEN["simple_cases"]
    theta = torch.tensor(simple[f"theta_{kind}"], dtype=torch.float64)
    monkeypatch.setattr(pooling, "rank_weights", lambda lengths: theta[None])
    pooled = pooling(torch.tensor(simple["features"], dtype=torch.float64)[None])
    assert pooled[0].tolist() == pytest.approx(simple[f"pooled_{kind}"])


def test_stored_weights_are_computed_again_after_the_parameters_changed(pooling, vectors):
    with torch.no_grad():
        before = pooling(vectors)
        assert torch.equal(pooling(vectors), before)
        pooling.linear.weight.mul_(-3)
        after = pooling(vectors)
    assert not torch.allclose(after, before)
    torch.testing.assert_close(after, pooling(vectors.requires_grad_()).detach())


def test_the_number_of_parameters_is_that_of_the_authors():
    count = sum(p.numel() for p in GeneralizedPooling().parameters())
    assert count == RECORDED["param_counts"]["gpo_32_32"]


def test_gradients_reach_vectors_and_weights(vectors, mask):
    pooling = GeneralizedPooling(position_width=4, hidden_width=3).double()
    pooling(vectors.requires_grad_(), mask).square().sum().backward()
    assert vectors.grad[mask].abs().sum() > 0
    assert vectors.grad[~mask].abs().sum() == 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pooling.parameters())


def test_a_mask_of_another_shape_is_refused(pooling, vectors):
    with pytest.raises(InputError, match="mask must have axes"):
        pooling(vectors, torch.ones(2, 4, dtype=torch.bool))
