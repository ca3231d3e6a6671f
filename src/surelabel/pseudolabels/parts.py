"""What parts of a picture show, among everything that they might show."""

import torch
from torch import Tensor

from surelabel.pseudolabels.checked import fine
from surelabel.shapes import check_shapes


def seen_in_parts(names: Tensor, others: Tensor) -> Tensor:
    """How likely each name is in a picture whose parts overlap.

        p^k_j = exp(z^k_j) / (Σ_i exp(z^k_i) + Σ_o exp(z^k_o))
        p_j = (max_k p^k_j + 1 - Π_k (1 - p^k_j)) / 2

    A part shows little else than one thing, so that there a softmax is a probability, where of a
    whole picture with several things it is not. The picture shows a name at least as surely as
    its best part does, and at most as if each part were another picture: it lies half-way, for
    parts that overlap agree in part. Things without a name of their own must be among
    the others, or their part goes to names that resemble them.

    Args:
        names: Similarities in nats (cosines times the encoder's scale) of each part with each
            name, ``(n, t, c)``.
        others: The same with words for everything else that pictures may show, ``(n, t, o)``.

    Returns:
        Targets in [0, 1], ``(n, c)``, in float32 or finer.

    Raises:
        InputError: shapes do not fit, there is no name, or a similarity is not finite.

    Source:
        none; ours. That a softmax over names is nearly calibrated where a picture shows one thing:
        Minderer et al., Revisiting the Calibration of Modern Neural Networks, NeurIPS 2021,
        arXiv:2106.07998.

    Example:
        >>> parts = torch.tensor([[[4.0, 0.0], [1.0, 1.0]]])
        >>> seen_in_parts(parts, torch.zeros(1, 2, 3)).round(decimals=4)
        tensor([[0.9427, 0.3280]])
    """
    check_shapes(names=(names, "n t c"), others=(others, "n t o"))
    together = torch.cat([fine(names), fine(others) if others.shape[-1] else others], dim=-1)
    parts = together.softmax(dim=-1)[..., : names.shape[-1]]
    return (parts.amax(dim=1) + 1 - (1 - parts).prod(dim=1)) / 2
