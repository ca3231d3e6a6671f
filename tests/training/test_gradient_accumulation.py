import warnings

import pytest
import torch
from torch import nn

from surelabel.errors import InputError
from surelabel.losses import SET_LOSSES, binary, two_way
from surelabel.records import Features
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)


class SmallDevice(nn.Module):
    """Head on a device whose memory is exhausted by more than ``limit`` images."""

    def __init__(self, limit):
        super().__init__()
        self.weight, self.limit, self.sizes = nn.Parameter(torch.zeros(2, 4)), limit, []

    def forward(self, features):
        if len(features.pooled) > self.limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        self.sizes.append(len(features.pooled))
        return features.pooled @ self.weight.T


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, limit):
        ctx.limit = limit
        return scores.clone()

    @staticmethod
    def backward(ctx, gradient):
        if len(gradient) > ctx.limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return gradient, None


class SmallInBackward(SmallDevice):
    def forward(self, features):
        self.sizes.append(len(features.pooled))
        return FailsBackward.apply(features.pooled @ self.weight.T, self.limit)


def train(method, loss=None):
    random = torch.Generator().manual_seed(0)
    targets = torch.randint(2, (11, 2), generator=random).float()
    known = torch.rand(11, 2, generator=random) < 0.7
    source = FeatureBatches(
        Features(torch.randn(11, 4, generator=random)), targets, known, batch_size=8
    )
    objective = Objective(loss or objective_mean_over_known(binary))
    history = run_training_loop(
        method, source, objective=objective, epochs=2, learning_rate=0.1, optimizer=torch.optim.SGD
    )
    return history, method.weight.detach()


@pytest.mark.parametrize("device", [SmallDevice, SmallInBackward])
def test_exhausted_memory_halves_the_forward_pass_and_gives_the_same_step(device):
    history, weight = train(SmallDevice(8))
    method = device(3)
    with pytest.warns(UserWarning, match="at most") as warned:
        small_history, small_weight = train(method)
    assert [str(w.message).split("most ")[1].split(" per")[0] for w in warned] == [
        "4 images",
        "2 images",
    ]
    assert max(method.sizes[-7:]) == 2  # the last epoch, of 8 and 3 images
    assert torch.allclose(weight, small_weight, atol=1e-6)
    for losses, small_losses in zip(history, small_history, strict=True):
        assert losses == pytest.approx(small_losses, rel=1e-5)


@pytest.mark.parametrize("device", [SmallDevice, SmallInBackward])
@pytest.mark.parametrize("loss", SET_LOSSES.values(), ids=SET_LOSSES)
def test_a_loss_that_compares_images_still_compares_all_images_of_the_batch(loss, device):
    history, weight = train(SmallDevice(8), loss)
    with pytest.warns(UserWarning, match="with at most [24] images per forward pass.$"):
        small_history, small_weight = train(device(2), loss)
    assert weight.abs().max() > 1e-3
    assert torch.allclose(weight, small_weight, atol=1e-6)
    assert small_history[1] == pytest.approx(history[1], rel=1e-5)


class WithDropout(SmallDevice):
    """Head with dropout, which keeps its outputs."""

    def __init__(self, limit):
        super().__init__(limit)
        self.outputs = []

    def forward(self, features):
        scores = nn.functional.dropout(super().forward(features) + 1, 0.5, self.training)
        self.outputs.append((torch.is_grad_enabled(), scores.detach()))
        return scores


def test_the_second_forward_pass_has_the_random_numbers_of_the_first():
    method = WithDropout(2)
    with pytest.warns(UserWarning, match="at most [24] images"):
        train(method, two_way)
    for with_gradient in (False, True):
        assert any(is_enabled == with_gradient for is_enabled, _ in method.outputs)
    first, second = (
        torch.cat([scores for is_enabled, scores in method.outputs[-14:] if is_enabled == wanted])
        for wanted in (False, True)
    )
    assert (first == 0).any()
    assert torch.equal(first, second)


class WithBatchNormalization(SmallDevice):
    def __init__(self, limit):
        super().__init__(limit)
        self.normalization = nn.BatchNorm1d(2)

    def forward(self, features):
        return self.normalization(super().forward(features)[:, :, None].repeat(1, 1, 2)).mean(2)


def test_batch_normalization_of_fewer_images_is_a_warning():
    with pytest.warns(UserWarning, match="Batch normalization or additional losses"):
        train(WithBatchNormalization(4), two_way)


def test_one_image_that_does_not_fit_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match="needs memory for at least one image at a time"):
            train(SmallDevice(0))
