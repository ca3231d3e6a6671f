"""Compute fingerprints of weights, architecture and preprocessing for feature cache keys."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from torch import Tensor

MIN_SAMPLED_VALUES = 2**16  # tensors with at least twice as many values are subsampled


def weights_fingerprint(
    weights: Mapping[str, Tensor], *, config: Mapping[str, Any], preprocess_cfg: Mapping[str, Any]
) -> str:
    """Return a hash of weights, architecture and preprocessing, with 16 hexadecimal digits.

    If a tensor has fewer than 131,072 values, all values are hashed. Of a larger tensor, only every
    k-th value is hashed, so that 65,536 to 131,072 values are hashed. Training usually changes all
    values of a tensor, so different checkpoints have different fingerprints. However, a change that
    affects only values that are not hashed is not detected.

    Args:
        weights: State dict of the model.
        config: Settings of the architecture that the weights do not contain, such as the
            activation function.
        preprocess_cfg: Preprocessing settings of the images.

    Example:
        >>> import torch
        >>> zeros, ones = torch.zeros(3), torch.ones(3)
        >>> cfg = {"config": {"width": 8}, "preprocess_cfg": {"size": 32}}
        >>> weights_fingerprint({"a": zeros}, **cfg) == weights_fingerprint({"a": ones}, **cfg)
        False
    """
    digest = hashlib.sha256(json.dumps([config, preprocess_cfg], sort_keys=True).encode())
    for name in sorted(weights):
        tensor = weights[name].detach()
        step = max(1, tensor.numel() // MIN_SAMPLED_VALUES)
        values = tensor.flatten()[::step].cpu().contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(values.double().numpy().tobytes())
    return digest.hexdigest()[:16]
