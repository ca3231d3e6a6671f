"""A short name for weights, architecture and preprocessing; every cache is keyed by it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from torch import Tensor

VALUES_READ = 2**16  # of a tensor with twice as many or more: every k-th, this many to twice that


def fingerprint(
    weights: Mapping[str, Tensor], *, config: Mapping[str, Any], preprocess: Mapping[str, Any]
) -> str:
    """Sixteen hex digits that change when weights, architecture or preprocessing change.

    Of a tensor with fewer than 131,072 values all are read; of a larger one every k-th, between
    65,536 and 131,072 of them. Training moves all values, so these tell two checkpoints apart
    while a model of a gigabyte costs a fraction of a second; a change by hand of values that lie
    between them goes unseen.

    Args:
        weights: The state of the model.
        config: The architecture: the same weights mean something else with another activation.
        preprocess: How pictures are prepared.

    Example:
        >>> import torch
        >>> one, two = torch.zeros(3), torch.ones(3)
        >>> settings = {"config": {"width": 8}, "preprocess": {"size": 32}}
        >>> fingerprint({"a": one}, **settings) == fingerprint({"a": two}, **settings)
        False
    """
    digest = hashlib.sha256(json.dumps([config, preprocess], sort_keys=True).encode())
    for name in sorted(weights):
        tensor = weights[name].detach()
        step = max(1, tensor.numel() // VALUES_READ)
        values = tensor.flatten()[::step].cpu().contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(values.double().numpy().tobytes())
    return digest.hexdigest()[:16]
