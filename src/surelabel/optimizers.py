"""Optimizers: ``optimizer(parameter_groups, lr, *, settings)``, constructed from torch.optim."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from surelabel.errors import ConfigError


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


def _check_optimizer_decay_rates(**rates: float) -> None:
    """Check that decay rates are in [0, 1).

    Raises:
        ConfigError: If a decay rate is out of range.
    """
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ConfigError(f"{name} must be in [0, 1); got {rate}. Use a value such as 0.9.")


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adamw": adamw, "sgd": sgd}
