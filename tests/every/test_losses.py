"""Requirements of every loss; a new entry of LOSSES or SET_LOSSES is tested automatically."""

import pytest
import torch

from surelabel.errors import InputError
from surelabel.losses import LINK_OF_LOSS, LOSSES, SET_LOSSES
from surelabel.tables import table_entry_settings

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
every = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
every_set = pytest.mark.parametrize("loss", SET_LOSSES.values(), ids=SET_LOSSES.keys())
linked = pytest.mark.parametrize("name", [name for name, link in LINK_OF_LOSS.items() if link])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 5, generator=generator)
    return scores, torch.randint(2, (6, 5), generator=generator).float()


def test_every_loss_has_a_link_or_none():
    assert LINK_OF_LOSS.keys() == LOSSES.keys() | SET_LOSSES.keys()
    assert not LOSSES.keys() & SET_LOSSES.keys()


def test_a_loss_that_compares_labels_has_no_link():
    assert {name for name, link in LINK_OF_LOSS.items() if link is None} >= SET_LOSSES.keys()


@every
def test_returns_one_number_for_each_element(loss, batch):
    assert loss(*batch).shape == (6, 5)
    assert (loss(*batch) >= 0).all()


@every
def test_each_image_is_independent(loss, batch):
    scores, targets = batch
    torch.testing.assert_close(loss(scores, targets)[:2], loss(scores[:2], targets[:2]))


@every
def test_graded_targets_mix_present_and_absent(loss, batch):
    scores, share = batch[0], torch.full((6, 5), 0.3)
    mixed = 0.3 * loss(scores, torch.ones(6, 5)) + 0.7 * loss(scores, torch.zeros(6, 5))
    torch.testing.assert_close(loss(scores, share), mixed)


@every
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0.0, 1.0, 20.0, 100.0, 1e4])
def test_value_and_gradient_stay_finite(loss, dtype, size):
    scores = torch.tensor([[size, -size, size, -size]], dtype=dtype, requires_grad=True)
    value = loss(scores, torch.tensor([[1.0, 1.0, 0.0, 0.0]], dtype=dtype))
    value.sum().backward()
    assert value.isfinite().all()
    assert scores.grad.isfinite().all()


@every
def test_a_confident_mistake_still_has_a_gradient(loss):
    scores = torch.full((1, 1), -30.0, requires_grad=True)
    loss(scores, torch.ones(1, 1)).sum().backward()
    assert scores.grad.item() < -0.1


@every
def test_gradient_is_correct(loss, batch):
    scores, targets = (t.double() for t in batch)
    assert torch.autograd.gradcheck(lambda x: loss(x, targets), scores.requires_grad_())


@every
def test_ten_steps_raise_present_and_lower_absent(loss):
    scores, targets = torch.zeros(1, 2, requires_grad=True), torch.tensor([[1.0, 0.0]])
    before = loss(scores, targets).sum().item()
    for _ in range(10):
        (gradient,) = torch.autograd.grad(loss(scores, targets).sum(), scores)
        scores = (scores - gradient).detach().requires_grad_()
    assert scores[0, 0] > 0.1
    assert scores[0, 1] < -0.1
    assert loss(scores, targets).sum().item() < before


@every
def test_changes_nothing_outside_itself(loss, batch):
    scores, targets = batch
    before = scores.clone(), targets.clone(), torch.get_rng_state()
    with torch.no_grad():
        loss(scores, targets)
        assert not torch.is_grad_enabled()
    loss(scores, targets)
    assert torch.is_grad_enabled()
    assert torch.equal(before[0], scores)
    assert torch.equal(before[1], targets)
    assert torch.equal(before[2], torch.get_rng_state())


@every
def test_reports_both_shapes_when_they_differ(loss):
    with pytest.raises(InputError, match=r"\(2, 3\).*\(2, 4\)"):
        loss(torch.zeros(2, 3), torch.zeros(2, 4))


@every
def test_unknown_labels_have_no_influence_on_known_ones(loss, batch):
    scores, targets = batch
    known = torch.rand(6, 5, generator=torch.Generator().manual_seed(1)) > 0.4
    lies = torch.where(known, targets, 1 - targets)
    assert torch.equal(loss(scores, targets)[known], loss(scores, lies)[known])


@linked
def test_the_link_takes_the_settings_of_the_loss(name):
    assert (
        table_entry_settings(LINK_OF_LOSS[name]).items()
        <= table_entry_settings(LOSSES[name]).items()
    )


@linked
def test_the_best_score_is_the_true_probability_through_the_link(name):
    eta = torch.tensor([[0.01, 0.05, 0.2, 0.5, 0.8, 0.95]], dtype=torch.float64)
    low, high = torch.full_like(eta, -40), torch.full_like(eta, 40)
    for _ in range(80):
        middle = ((low + high) / 2).requires_grad_()
        LOSSES[name](middle, eta).sum().backward()
        rising, middle = middle.grad > 0, middle.detach()
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
    torch.testing.assert_close(
        LINK_OF_LOSS[name]().logits(low).sigmoid(), eta, atol=1e-9, rtol=1e-7
    )


@linked
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_short_float_is_cast_up_before_loss_and_link(name, dtype):
    scores = torch.linspace(-8, 8, 33).to(dtype).reshape(3, 11)
    targets = torch.ones(3, 11, dtype=dtype)
    wide = LOSSES[name](scores.float(), targets.float())
    assert torch.equal(LOSSES[name](scores, targets), wide)
    assert torch.equal(
        LINK_OF_LOSS[name]().logits(scores), LINK_OF_LOSS[name]().logits(scores.float())
    )


@pytest.fixture
def partly(batch):
    return *batch, torch.rand(6, 5, generator=torch.Generator().manual_seed(1)) > 0.3


@every_set
def test_a_set_loss_is_one_number(loss, partly):
    assert loss(*partly).shape == ()
    assert loss(*partly) > 0


@every_set
def test_a_set_loss_ignores_the_order_of_images_and_labels(loss, partly):
    turned = [t.flip(0).roll(2, dims=1) for t in partly]
    torch.testing.assert_close(loss(*turned), loss(*partly))


@every_set
def test_unknown_labels_have_no_influence_on_a_set_loss(loss, partly):
    scores, targets, known = partly
    scores = scores.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(scores, targets, known), scores)
    other_scores = torch.where(known, scores, 50.0)
    lies = torch.where(known, targets, 1 - targets)
    torch.testing.assert_close(loss(other_scores, lies, known), loss(scores, targets, known))
    assert (gradient[~known] == 0).all()


@every_set
def test_a_set_loss_without_a_positive_or_with_nothing_known_is_zero(loss):
    for target, share in ((0.0, True), (0.0, False), (1.0, False)):
        scores = torch.tensor([[-100.0, 0.0, 100.0]] * 2, requires_grad=True)
        value = loss(scores, torch.full((2, 3), target), torch.full((2, 3), share))
        value.backward()
        assert value.item() == 0
        assert (scores.grad == 0).all()


@every_set
def test_a_constant_added_to_all_scores_leaves_a_set_loss_as_it_was(loss, partly):
    scores, targets, known = partly
    torch.testing.assert_close(loss(scores + 3, targets, known), loss(scores, targets, known))


@every_set
def test_a_set_loss_goes_over_from_graded_to_certain_targets_without_a_jump(loss, partly):
    scores, targets, known = partly
    graded = targets.double() * (1 - 2e-9) + 1e-9
    torch.testing.assert_close(
        loss(scores.double(), graded, known),
        loss(scores.double(), targets.double(), known),
        atol=1e-4,
        rtol=0,
    )


@every_set
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0.0, 1.0, 20.0, 100.0, 1e4])
def test_value_and_gradient_of_a_set_loss_stay_finite(loss, dtype, size):
    scores = torch.tensor([[size, -size, size, -size]] * 2, dtype=dtype, requires_grad=True)
    targets = torch.tensor([[1, 1, 0, 0], [0.5, 0, 1, 0]], dtype=dtype)
    value = loss(scores, targets, torch.ones(2, 4, dtype=torch.bool))
    value.backward()
    assert value.dtype == torch.promote_types(dtype, torch.float32)
    assert value.isfinite()
    assert scores.grad.isfinite().all()


@every_set
def test_a_confident_mistake_in_order_still_has_a_gradient(loss):
    scores = torch.tensor([[-30.0, 30.0]], requires_grad=True)
    loss(scores, torch.tensor([[1.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool)).backward()
    assert scores.grad[0, 0] < -0.1
    assert scores.grad[0, 1] > 0.1


@every_set
@pytest.mark.parametrize("graded", [False, True])
def test_gradient_of_a_set_loss_is_correct(loss, partly, graded):
    scores, targets, known = partly
    scores, targets = scores.double().requires_grad_(), targets.double()
    targets = 0.2 + 0.6 * targets if graded else targets
    assert torch.autograd.gradcheck(lambda x: loss(x, targets, known), scores)


@every_set
def test_ten_steps_lift_present_above_absent(loss):
    scores, targets = torch.zeros(1, 2, requires_grad=True), torch.tensor([[1.0, 0.0]])
    known = torch.ones(1, 2, dtype=torch.bool)
    before = loss(scores, targets, known).item()
    for _ in range(10):
        (gradient,) = torch.autograd.grad(loss(scores, targets, known), scores)
        scores = (scores - gradient).detach().requires_grad_()
    assert scores[0, 0] - scores[0, 1] > 0.5
    assert loss(scores, targets, known).item() < before


@every_set
def test_a_set_loss_changes_nothing_outside_itself(loss, partly):
    before = [t.clone() for t in partly], torch.get_rng_state()
    with torch.no_grad():
        loss(*partly)
        assert not torch.is_grad_enabled()
    assert all(torch.equal(was, now) for was, now in zip(before[0], partly, strict=True))
    assert torch.equal(before[1], torch.get_rng_state())


@every_set
def test_a_set_loss_reports_all_shapes_when_they_differ(loss):
    with pytest.raises(InputError, match=r"\(2, 3\).*\(2, 3\).*\(2, 4\)"):
        loss(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 4, dtype=torch.bool))
