"""Label-pair regularizer: a present label should be likelier than an absent one. Exact."""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from surelabel.records import Step
from surelabel.regularizers.pairs import Pairs

BLOCK = 2**16  # pairs worked on at a time: a few hundred kilobytes, which a core keeps near


def label_pair(step: Step) -> Tensor:
    """Charge every pair of a present and an absent label the surprise at their order.

        2 / (T · (T - 1)) · Σ_{t present} Σ_{s absent} log(1 + exp(z_s - z_t)),  mean over pictures

    z are log-odds where the loss has a strict link, raw scores where not, T the known labels of
    the picture. Only differences inside a picture count, so the loss beside it sets the level.

    Args:
        step: One training step. A target y between 0 and 1 takes part as present with weight y
            and as absent with weight 1 - y, never against itself: for labels drawn independently
            with these probabilities that is the expected value.

    Returns:
        One number >= 0, ``()``, in nats, float32 at least; 0 where no picture has both a present
        and an absent label. It can be differentiated once.

    Raises:
        InputError: the parts of the step differ in shape.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 19 and 20, where beta of a pair is the sigmoid of the difference of log-odds.

    Differs:
        Partial and graded targets are ours: with all labels known and 0 or 1 it is the paper's.
        A picture with fewer than two known labels is left out of the mean. Beside a proper loss it
        moves probabilities where labels depend on each other: see docs/regularizers.md.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> label_pair(Step(scores, scores, targets, targets >= 0)).round(decimals=4)
        tensor(0.1467)
    """
    return summed(Pairs.of(step))


def summed(pairs: Pairs) -> Tensor:
    """The charges of all pairs times their share, ``()``; it can be differentiated once."""
    total: Tensor = _LabelPair.apply(pairs.values, pairs.present, pairs.absent, pairs.share)
    return total


class _LabelPair(torch.autograd.Function):
    """The sum over all pairs, with its gradient worked out on the way: nothing else is kept."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, present: Tensor, absent: Tensor, share: Tensor) -> Tensor:
        total, gradient = _sum_over_pairs(values, present, absent, share)
        ctx.save_for_backward(gradient)
        return total.to(values.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None, None


def _sum_over_pairs(
    values: Tensor, present: Tensor, absent: Tensor, share: Tensor
) -> tuple[Tensor, Tensor]:
    """The weighted sum, ``()`` float64, and its gradient, ``(n, c)``.

    The work is the fewer ones of a picture times all its labels: where present labels outnumber
    absent ones, both change places and the sign of the values with them.
    """
    swap = ((present > 0).sum(1) > (absent > 0).sum(1))[:, None]
    values = torch.where(swap, -values, values)
    present, absent = torch.where(swap, absent, present), torch.where(swap, present, absent)
    total = -math.log(2) * ((present * absent).sum(1, dtype=torch.float64) * share).sum()
    gradient = torch.zeros_like(values)
    for rows, columns in _blocks((present > 0) & (share > 0)[:, None]):
        z = values[rows]
        gaps = z[:, None, :] - z.gather(1, columns)[:, :, None]
        weights = present[rows].gather(1, columns)[:, :, None] * absent[rows][:, None, :]
        charges = (F.softplus(gaps, threshold=40) * weights).sum((1, 2), dtype=torch.float64)
        total = total + (charges * share[rows]).sum()
        pull = gaps.sigmoid_() * weights
        moved = pull.sum(1).scatter_add_(1, columns, -pull.sum(2))
        gradient.index_add_(0, rows, moved * share[rows, None].to(moved.dtype))
    return total, torch.where(swap, -gradient, gradient)


def _blocks(present: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows with equally many present labels, and columns of these, ``(r,)`` and ``(r, k)``.

    Together they cover every present label once, about ``BLOCK`` pairs with all labels at a time.
    """
    counts, columns = present.sum(1), present.nonzero()[:, 1]
    first = counts.cumsum(0) - counts
    for count in counts.unique().tolist():
        if not count:
            continue
        rows = (counts == count).nonzero()[:, 0]
        places = columns[first[rows, None] + torch.arange(count, device=rows.device)]
        wide = min(count, max(1, BLOCK // present.shape[1]))
        tall = max(1, BLOCK // (wide * present.shape[1]))
        for some, theirs in zip(rows.split(tall), places.split(tall), strict=True):
            yield from ((some, part) for part in theirs.split(wide, dim=1))
