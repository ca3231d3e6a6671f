"""Define optimizers: functions ``optimizer(parameter_groups, lr, *, settings)``."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from surelabel.errors import ConfigError

EPSILON = 1e-8  # added to square roots and norms in AdamP


def adamw(
    parameter_groups: Iterable[Any], lr: float, *, beta_1: float = 0.9, beta_2: float = 0.999
) -> torch.optim.Optimizer:
    """Construct AdamW (Adam with decoupled weight decay), often used for heads and transformers.

    Args:
        parameter_groups: Parameter groups with their weight decay, as in torch.optim.
        lr: Learning rate.
        beta_1: Decay rate of the moving average of the gradient, in [0, 1).
        beta_2: Decay rate of the moving average of the squared gradient, in [0, 1).

    Raises:
        ConfigError: If a decay rate is out of range.

    Source:
        Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019.
    """
    _check_optimizer_decay_rates(beta_1=beta_1, beta_2=beta_2)
    return torch.optim.AdamW(parameter_groups, lr=lr, betas=(beta_1, beta_2))


def sgd(
    parameter_groups: Iterable[Any], lr: float, *, momentum: float = 0.9
) -> torch.optim.Optimizer:
    """Construct stochastic gradient descent with momentum, often used to fine-tune whole networks.

    Args:
        parameter_groups: Parameter groups with their weight decay, as in torch.optim.
        lr: Learning rate.
        momentum: Decay rate of the accumulated gradient, in [0, 1).

    Raises:
        ConfigError: If ``momentum`` is out of range.

    Source:
        Sutskever et al., On the Importance of Initialization and Momentum in Deep Learning,
        ICML 2013.
    """
    _check_optimizer_decay_rates(momentum=momentum)
    return torch.optim.SGD(parameter_groups, lr=lr, momentum=momentum)


def adamp(
    parameter_groups: Iterable[Any],
    lr: float,
    *,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    delta: float = 0.1,
    wd_ratio: float = 0.1,
) -> torch.optim.Optimizer:
    """Construct AdamP, which does not increase the norm of scale-invariant weights.

    Args:
        parameter_groups: Parameter groups with their weight decay, as in torch.optim.
        lr: Learning rate.
        beta_1: Decay rate of the moving average of the gradient, in [0, 1).
        beta_2: Decay rate of the moving average of the squared gradient, in [0, 1).
        delta: Limit in [0, 1]. A weight is considered scale-invariant if the absolute cosine of
            gradient and weight, multiplied by the square root of the width, is below this limit.
        wd_ratio: Factor of the weight decay of scale-invariant weights, in [0, 1].

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Heo et al., AdamP: Slowing Down the Slowdown for Momentum Optimizers on Scale-invariant
        Weights, ICLR 2021, arXiv:2006.08217.
    """
    _check_optimizer_decay_rates(beta_1=beta_1, beta_2=beta_2)
    for name, value in (("delta", delta), ("wd_ratio", wd_ratio)):
        if not 0 <= value <= 1:
            raise ConfigError(f"{name} must be in [0, 1]; got {value}. Use a value such as 0.1.")
    return AdamP(parameter_groups, lr, betas=(beta_1, beta_2), delta=delta, wd_ratio=wd_ratio)


class AdamP(torch.optim.Optimizer):
    """Implement Adam with decoupled weight decay and projected steps of scale-invariant weights.

    For a tensor with two or more axes, the gradient is compared with the weight, either for all
    rows or for the whole tensor. If they are nearly orthogonal, the step is projected orthogonally
    to the weight.

    Args:
        parameter_groups: Parameter groups, as in torch.optim.
        lr: Learning rate.
        betas: Decay rates of the moving averages of the gradient and of its square.
        delta: Limit of the cosine for the projection; see ``adamp``.
        wd_ratio: Factor of the weight decay of projected weights.
        weight_decay: Weight decay.
    """

    def __init__(
        self,
        parameter_groups: Iterable[Any],
        lr: float,
        *,
        betas: tuple[float, float],
        delta: float,
        wd_ratio: float,
        weight_decay: float = 0.0,
    ):
        defaults = {"lr": lr, "betas": betas, "delta": delta, "wd_ratio": wd_ratio}
        super().__init__(parameter_groups, defaults | {"weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all parameters with a gradient, and return the loss of ``closure``, if any."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (beta_1, beta_2) = self.state[parameter], group["betas"]
        if not state:
            state["step"] = 0
            state["mean"] = torch.zeros_like(parameter)
            state["mean_square"] = torch.zeros_like(parameter)
        state["step"] += 1
        mean, mean_square = state["mean"], state["mean_square"]
        mean.lerp_(gradient, 1 - beta_1)
        mean_square.lerp_(gradient.square(), 1 - beta_2)
        deviation = (mean_square / (1 - beta_2 ** state["step"])).sqrt() + EPSILON
        direction, decay = mean / deviation, group["weight_decay"]
        rows = scale_invariant_rows(parameter, gradient, delta=group["delta"])
        if rows is not None:
            unit = rows / (rows.norm(dim=1, keepdim=True) + EPSILON)
            flat = direction.reshape(rows.shape)
            flat = flat - unit * (unit * flat).sum(dim=1, keepdim=True)
            direction, decay = flat.reshape(parameter.shape), decay * group["wd_ratio"]
        parameter.mul_(1 - group["lr"] * decay)
        parameter.sub_(direction * (group["lr"] / (1 - beta_1 ** state["step"])))


def scale_invariant_rows(weight: Tensor, gradient: Tensor, *, delta: float) -> Tensor | None:
    """Return the rows of a weight if the gradient is nearly orthogonal to each row, else None.

    The rows are the output channels, ``(c, k)``, or the whole tensor, ``(1, k)``. All absolute
    cosines of gradient and weight must be below delta / sqrt(k). A vector or scalar is never
    scale-invariant.

    Args:
        weight: Weight tensor of any shape.
        gradient: Gradient of the weight, with the shape of ``weight``.
        delta: Limit of the absolute cosine, multiplied by sqrt(k), in [0, 1].
    """
    if weight.ndim < 2:
        return None
    for rows in (weight.flatten(1), weight.reshape(1, -1)):
        cosines = torch.cosine_similarity(rows, gradient.reshape(rows.shape), dim=1, eps=EPSILON)
        if cosines.abs().max() < delta / math.sqrt(rows.shape[1]):
            return rows
    return None


def _check_optimizer_decay_rates(**rates: float) -> None:
    """Check that decay rates are in [0, 1).

    Raises:
        ConfigError: If a decay rate is out of range.
    """
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ConfigError(f"{name} must be in [0, 1); got {rate}. Use a value such as 0.9.")


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamp": adamp,
    "adamw": adamw,
    "sgd": sgd,
}
