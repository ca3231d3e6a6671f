"""Pack encoder features into one fp16 array per image for the cache, and unpack the features."""

import math

import numpy as np
import torch
from torch import Tensor

from surelabel.errors import DataError
from surelabel.features.cache import Float16Array
from surelabel.features.feature_kinds import parse_ladder_feature_kind
from surelabel.records import Features

FLOAT16_MAX, FLOAT32_TINY = (
    float(v) for v in (np.finfo(np.float16).max, np.finfo(np.float32).tiny)
)
KINDS_WITH_GRID = (
    "attentive",
    "multi_layer",
    "trunk",
)  # kinds that are packed as flat arrays of several tensors, after the grid


def pack_features(kind: str, features: Features) -> Float16Array:
    """Pack the features of n images into one fp16 array per image.

    Returns:
        Array of shape ``(n, 1 + p, d)`` with the pooled vector and the p patch vectors of each
        image; p is 0 for features without patches. If the kind has tensors of several shapes, all
        values of an image are in one row after the patch grid, ``(n, number of values)``.

    Raises:
        DataError: If a value exceeds the range of fp16.
    """
    pooled = features.pooled[:, None]
    if not _is_packed_with_grid(kind):
        rows = [pooled] if features.patches is None else [pooled, features.patches]
        return _pack_float16(torch.cat(rows, dim=1))
    assert features.grid is not None
    grid = torch.tensor(features.grid, dtype=pooled.dtype, device=pooled.device)
    layers = (features.layers or {}).values()
    tensors = [pooled, features.patches, features.attention, *layers, features.self_aware_sum]
    flat = [t.flatten(1) for t in tensors if t is not None]
    if features.multi_layer is not None:
        n_layers = grid.new_tensor([features.multi_layer.shape[2]]).expand(len(pooled), 1)
        flat += [n_layers, features.multi_layer.flatten(1)]
    return _pack_float16(torch.cat([grid.expand(len(pooled), 2), *flat], dim=1))


def unpack_features(kind: str, arrays: Float16Array, width: int) -> Features:
    """Unpack features from packed arrays, in float32.

    Args:
        kind: Kind of the packed features.
        arrays: Packed arrays of n images, as returned by :func:`pack_features`.
        width: Width d of the pooled vectors.
    """
    rows = torch.from_numpy(arrays).float()
    if not _is_packed_with_grid(kind):
        if rows.shape[1] == 1:
            return Features(rows[:, 0])
        side = math.isqrt(rows.shape[1] - 1)  # preprocessed images are square
        return Features(rows[:, 0], rows[:, 1:], (side, side))
    down, across = (int(v) for v in rows[0, :2])
    pooled, values = rows[:, 2 : 2 + width], rows[:, 2 + width :]
    p = down * across
    if kind == "trunk":
        return Features(pooled, grid=(down, across), layers={-1: values.unflatten(1, (p, -1))})
    if (ladder := parse_ladder_feature_kind(kind)) is not None:
        return _unpack_ladder_features(pooled, values, (down, across), depth=ladder[1])
    if kind == "multi_layer":
        patches, outputs = values[:, : p * width], values[:, p * width :]
        return Features(
            pooled,
            patches.unflatten(1, (p, width)),
            (down, across),
            multi_layer=outputs[:, 1:].unflatten(1, (p, int(outputs[0, 0]), -1)),
        )
    patches, attention = values.split([p * width, p * p], dim=1)
    return Features(
        pooled,
        patches.unflatten(1, (p, width)),
        (down, across),
        attention=_normalize_unpacked_attention(attention.unflatten(1, (p, p))),
    )


def _is_packed_with_grid(kind: str) -> bool:
    return kind in KINDS_WITH_GRID or parse_ladder_feature_kind(kind) is not None


def _unpack_ladder_features(
    pooled: Tensor, values: Tensor, grid: tuple[int, int], *, depth: int
) -> Features:
    """Split packed tokens into the class and patch tokens of a layer, and ``self_aware_sum``."""
    p = grid[0] * grid[1]
    tokens = values.unflatten(1, (1 + 2 * p, -1))
    layer_tokens, self_aware_sum = tokens.split([1 + p, p], dim=1)
    layers = {-depth - 1: layer_tokens}
    return Features(pooled, grid=grid, layers=layers, self_aware_sum=self_aware_sum)


def _normalize_unpacked_attention(attention: Tensor) -> Tensor:
    """Rescale each attention row to sum 1, since rounding to fp16 changes the sums slightly."""
    return attention / attention.sum(dim=-1, keepdim=True).clamp_min(FLOAT32_TINY)


def _pack_float16(rows: Tensor) -> Float16Array:
    largest = float(rows.abs().amax())
    if largest > FLOAT16_MAX:
        raise DataError(
            f"Absolute values of features must be at most {FLOAT16_MAX:,.0f}, the largest fp16 "
            f"number; got {largest:,.3g}. Use an encoder with other weights."
        )
    arrays: Float16Array = rows.cpu().numpy().astype(np.float16)
    return arrays
