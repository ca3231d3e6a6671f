"""Optimizers: ``optimizer(parameter_groups, lr, *, settings)``, constructed from torch.optim."""

from collections.abc import Callable, Iterable
from typing import Any

import torch


def adamw(
    parameter_groups: Iterable[Any], lr: float, *, beta_1: float = 0.9, beta_2: float = 0.999
) -> torch.optim.Optimizer:
    """Construct AdamW (Adam with decoupled weight decay), often used for heads and transformers.

    Args:
        parameter_groups: Parameter groups with their weight decay, as in torch.optim.
        lr: Learning rate.
        beta_1: Decay rate of the moving average of the gradient, in [0, 1).
        beta_2: Decay rate of the moving average of the squared gradient, in [0, 1).

    Source:
        Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019.
    """
    return torch.optim.AdamW(parameter_groups, lr=lr, betas=(beta_1, beta_2))


def sgd(
    parameter_groups: Iterable[Any], lr: float, *, momentum: float = 0.9
) -> torch.optim.Optimizer:
    """Construct stochastic gradient descent with momentum, often used to fine-tune whole networks.

    Args:
        parameter_groups: Parameter groups with their weight decay, as in torch.optim.
        lr: Learning rate.
        momentum: Decay rate of the accumulated gradient, in [0, 1).

    Source:
        Sutskever et al., On the Importance of Initialization and Momentum in Deep Learning,
        ICML 2013.
    """
    return torch.optim.SGD(parameter_groups, lr=lr, momentum=momentum)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adamw": adamw, "sgd": sgd}
