"""Text-guided spatial selection: a small network beside a frozen block that asks the names."""

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.shapes import check_shapes

SEES = (1, 3)  # patches a side that its two streams look at


class LocalAdapter(nn.Module):
    """From tokens of a block to what is added to the local stream beside it.

        A_i = gelu(norm(conv_i(x)))                          i = 1: a patch, 2: three by three
        A_i <- A_i + softmax over labels (LN_i(A_i) · LN(t)' / sqrt(d)) LN(t)
        m   = sigmoid(conv3x3(mean and max over the channels of both))
        out = W (A_1 · m_1 + A_2 · m_2)

    Args:
        width: Of the tokens (w).
        joint: Of the names' vectors, and of both streams (d).
        variant: Of the convolution that makes the two masks: each from both maps as in the
            released ``"code"``, or each from its own as in the ``"paper"``.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, sections 4.2 and A.5
        (eq. 4).

    Differs:
        The paper calls the masks' convolution depth-wise, the released code has a full one. Class
        tokens stay outside: the code carries them along and drops them.
    """

    def __init__(self, width: int, joint: int, *, variant: Literal["paper", "code"] = "code"):
        super().__init__()
        narrow = [nn.Conv2d(width, joint, k, padding=k // 2, bias=False) for k in SEES]
        self.narrow = nn.ModuleList(narrow)
        self.norms = nn.ModuleList(nn.BatchNorm2d(joint) for _ in SEES)
        self.queries = nn.ModuleList(nn.LayerNorm(joint) for _ in SEES)
        self.keys = nn.LayerNorm(joint)
        groups = len(SEES) if variant == "paper" else 1
        self.masks = nn.Conv2d(2, len(SEES), 3, padding=1, groups=groups, bias=False)
        self.widen = nn.Conv2d(joint, width, 1, bias=False)

    def forward(self, patches: Tensor, grid: tuple[int, int], texts: Tensor) -> Tensor:
        """From patches ``(n, p, w)``, row by row of the grid, to as many of the same width.

        Args:
            patches: Tokens after a block, without its class token.
            grid: Patches down and across.
            texts: Vectors of the names, not of unit length, ``(c, d)``.
        """
        check_shapes(patches=(patches, "n p w"), texts=(texts, "c d"))
        maps = patches.transpose(1, 2).unflatten(2, grid)
        keys = self.keys(texts)
        streams = [
            _asked(F.gelu(_normed(norm, conv(maps))), query, keys)
            for conv, norm, query in zip(self.narrow, self.norms, self.queries, strict=True)
        ]
        both = torch.cat(streams, dim=1)
        seen = torch.stack([both.mean(dim=1), both.amax(dim=1)], dim=1)
        chosen = self.masks(seen).sigmoid().unbind(1)
        kept = sum(a * m[:, None] for a, m in zip(streams, chosen, strict=True))
        out: Tensor = self.widen(kept).flatten(2).transpose(1, 2)
        return out


def _normed(norm: Any, maps: Tensor) -> Tensor:
    """Through a batch norm; as in evaluation where a batch is one place, which has no spread."""
    if norm.training and maps[:, 0].numel() == 1:
        return F.batch_norm(maps, norm.running_mean, norm.running_var, norm.weight, norm.bias)
    normed: Tensor = norm(maps)
    return normed


def _asked(maps: Tensor, query: nn.Module, keys: Tensor) -> Tensor:
    """Each place of maps ``(n, d, down, across)`` with the names ``(c, d)`` that suit it added."""
    places = maps.movedim(1, -1)
    shares: Tensor = (query(places) @ keys.T / keys.shape[1] ** 0.5).softmax(dim=-1)
    return (places + shares @ keys).movedim(-1, 1)
