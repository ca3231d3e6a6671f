"""Optimizers: ``optimizer(groups, lr, *, settings)``. Thin names for torch's own."""

from collections.abc import Callable, Iterable
from typing import Any

import torch


def adamw(
    groups: Iterable[Any], lr: float, *, beta_1: float = 0.9, beta_2: float = 0.999
) -> torch.optim.Optimizer:
    """Adam with weight decay apart from the gradient; for heads and transformers.

    Args:
        groups: Parameters with their weight decay, as torch takes them.
        lr: Step size.
        beta_1: How slowly the mean gradient forgets, in [0, 1).
        beta_2: How slowly its mean square forgets, in [0, 1).

    Source:
        Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019.
    """
    return torch.optim.AdamW(groups, lr=lr, betas=(beta_1, beta_2))


def sgd(groups: Iterable[Any], lr: float, *, momentum: float = 0.9) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum; what whole networks are often fine-tuned with.

    Args:
        groups: Parameters with their weight decay, as torch takes them.
        lr: Step size.
        momentum: How slowly the direction forgets, in [0, 1).

    Source:
        Sutskever et al., On the Importance of Initialization and Momentum in Deep Learning,
        ICML 2013.
    """
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adamw": adamw, "sgd": sgd}
