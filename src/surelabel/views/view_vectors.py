"""Concatenate the vectors of whole images and of their views."""

import torch
from torch import Tensor

from surelabel.records import Features


def image_and_view_vectors(features: Features) -> Tensor:
    """Return the vectors of the whole image, then of each view, ``(n, 1 + t, d)``.

    Args:
        features: Features of n images with t views each. If ``views`` is None, t is 0.

    Example:
        >>> features = Features(torch.tensor([[1.0, 0.0]]), views=torch.tensor([[[0.0, 1.0]]]))
        >>> image_and_view_vectors(features)
        tensor([[[1., 0.],
                 [0., 1.]]])
    """
    whole = features.pooled[:, None]
    return whole if features.views is None else torch.cat([whole, features.views], dim=1)
