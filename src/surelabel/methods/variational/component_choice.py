"""Sample a mixture component with a straight-through gradient."""

import torch
from torch import Tensor


def choose_components(logits: Tensor, noise: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return one-hot weights of sampled components, whose gradient is that of a softmax.

        soft = softmax((logits + noise) / temperature)
        weights = onehot(argmax soft), with the gradient of soft

    Args:
        logits: Logits of the mixture weights, ``(…, K)`` or ``(K,)``.
        noise: Standard Gumbel noise, ``(…, K)``; see ``sample_gumbel_noise``.
        temperature: Temperature of the softmax, > 0.

    Returns:
        Weights that are 1 for the sampled component and 0 for the others, ``(…, K)``.

    Source:
        Jang et al., Categorical Reparameterization with Gumbel-Softmax, ICLR 2017,
        arXiv:1611.01144: straight-through estimator.

    Example:
        >>> choose_components(torch.zeros(2), torch.tensor([[0.1, 2.0], [0.0, -1.0]]))
        tensor([[0., 1.],
                [1., 0.]])
    """
    soft = ((logits + noise) / temperature).softmax(dim=-1)
    hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(dim=-1, keepdim=True), 1.0)
    return hard + (soft - soft.detach())


def sample_gumbel_noise(*shape: int, like: Tensor) -> Tensor:
    """Return standard Gumbel noise of the given shape, with the type and device of ``like``."""
    return -like.new_empty(shape).exponential_().log()
