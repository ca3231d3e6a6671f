"""What an encoder gives of one picture as one array, and back: the cache keeps arrays."""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from surelabel.encoding.parts import rungs
from surelabel.errors import DataError
from surelabel.records import Features

Half = npt.NDArray[np.float16]
LARGEST, LEAST = (float(v) for v in (np.finfo(np.float16).max, np.finfo(np.float32).tiny))
SELF_DESCRIBING = ("attentive", "trunk")  # begin with their grid, for they hold several shapes


def packed(part: str, seen: Features) -> Half:
    """One array a picture: ``(n, 1 + p, d)``, or ``(n, k)`` for what holds several shapes."""
    rows = [seen.pooled[:, None]]
    if not _self_describing(part):
        rows += [] if seen.patches is None else [seen.patches]
        return _half(torch.cat(rows, dim=1))
    assert seen.grid is not None
    grid = torch.tensor(seen.grid, dtype=seen.pooled.dtype, device=seen.pooled.device)
    more = [seen.patches, seen.attention, *(seen.layers or {}).values(), seen.beside]
    flat = [t.flatten(1) for t in (*rows, *more) if t is not None]
    return _half(torch.cat([grid.expand(len(seen.pooled), 2), *flat], dim=1))


def unpacked(part: str, arrays: Half, width: int) -> Features:
    """Features of the arrays of ``n`` pictures, in float32; ``width`` is that of ``pooled``."""
    rows = torch.from_numpy(arrays).float()
    if not _self_describing(part):
        side = math.isqrt(rows.shape[1] - 1)  # pictures are prepared square
        alone = rows.shape[1] == 1
        return Features(rows[:, 0]) if alone else Features(rows[:, 0], rows[:, 1:], (side, side))
    down, across = (int(v) for v in rows[0, :2])
    pooled, rest = rows[:, 2 : 2 + width], rows[:, 2 + width :]
    p = down * across
    if part == "trunk":
        return Features(pooled, grid=(down, across), layers={-1: rest.unflatten(1, (p, -1))})
    if (ladder := rungs(part)) is not None:
        return _ladder(pooled, rest, (down, across), depth=ladder[1])
    patches, attention = rest.split([p * width, p * p], dim=1)
    return Features(
        pooled,
        patches.unflatten(1, (p, width)),
        (down, across),
        attention=_whole(attention.unflatten(1, (p, p))),
    )


def _self_describing(part: str) -> bool:
    return part in SELF_DESCRIBING or rungs(part) is not None


def _ladder(pooled: Tensor, rest: Tensor, grid: tuple[int, int], *, depth: int) -> Features:
    """Tokens with their class token and what lies beside them: ``1 + 2 p`` of one width."""
    p = grid[0] * grid[1]
    tokens = rest.unflatten(1, (1 + 2 * p, -1))
    entering, beside = tokens.split([1 + p, p], dim=1)
    return Features(pooled, grid=grid, layers={-depth - 1: entering}, beside=beside)


def _whole(attention: Tensor) -> Tensor:
    """Rows of sum 1, which rounding has moved a little."""
    return attention / attention.sum(dim=-1, keepdim=True).clamp_min(LEAST)


def _half(rows: Tensor) -> Half:
    if rows.abs().amax() > LARGEST:
        raise DataError(
            f"What an encoder gives must stay below {LARGEST:.0f}, so that it can be kept in half "
            f"precision. Got {float(rows.abs().amax()):.3g}; take other weights."
        )
    made: Half = rows.cpu().numpy().astype(np.float16)
    return made
