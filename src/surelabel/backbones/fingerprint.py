"""A short name for weights and preprocessing together; every cache is keyed by it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from torch import Tensor

VALUES_READ = 2**16  # of each tensor: all of a smaller one, evenly spread ones of a larger one


def fingerprint(weights: Mapping[str, Tensor], preprocess: Mapping[str, Any]) -> str:
    """Sixteen hex digits that change when the weights or the preprocessing change.

    Large tensors are sampled: training moves all of their values, so that up to 65,536 of them
    tell two checkpoints apart and a model of a gigabyte costs a fraction of a second.

    Args:
        weights: The state of the model.
        preprocess: How pictures are prepared.

    Example:
        >>> import torch
        >>> one, two = torch.zeros(3), torch.ones(3)
        >>> fingerprint({"a": one}, {}) == fingerprint({"a": two}, {})
        False
    """
    digest = hashlib.sha256(json.dumps(preprocess, sort_keys=True).encode())
    for name in sorted(weights):
        tensor = weights[name].detach()
        step = max(1, tensor.numel() // VALUES_READ)
        values = tensor.flatten()[::step].cpu().contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(values.double().numpy().tobytes())
    return digest.hexdigest()[:16]
