"""Compute the exact sum of the logistic loss over all label pairs, and its gradient."""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from surelabel.regularizers.pairs.label_pairs import LabelPairs

PAIRS_PER_BLOCK = 2**16  # a few hundred kilobytes, which fit into the cache of a core


def sum_pair_losses(pairs: LabelPairs) -> Tensor:
    """Return the weighted sum of log(1 + exp(z_s - z_t)) over all label pairs, ``()``.

    In the formula, z_t is the score of the positive label and z_s is the score of the negative
    label. A label is not paired with itself. Only the first derivative of the sum is available.
    """
    total: Tensor = _PairLossSum.apply(
        pairs.scores, pairs.positive_weights, pairs.negative_weights, pairs.image_weights
    )
    return total


class _PairLossSum(torch.autograd.Function):
    """Compute the weighted sum of all pair losses; the forward pass saves only the gradient."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, positive: Tensor, negative: Tensor, image_weights: Tensor
    ) -> Tensor:
        total, gradient = _pair_loss_sum_and_gradient(scores, positive, negative, image_weights)
        ctx.save_for_backward(gradient)
        return total.to(scores.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None, None


def _pair_loss_sum_and_gradient(
    scores: Tensor, positive: Tensor, negative: Tensor, image_weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the weighted sum, ``()`` float64, and its gradient, ``(n, c)``.

    The computing time of an image is proportional to its number of labels times its number of
    positives. Therefore, if an image has more positives than negatives, positives and negatives are
    exchanged and the scores change sign.
    """
    swap = ((positive > 0).sum(1) > (negative > 0).sum(1))[:, None]
    scores = torch.where(swap, -scores, scores)
    positive, negative = (
        torch.where(swap, negative, positive),
        torch.where(swap, positive, negative),
    )
    pairs_with_itself = (positive * negative).sum(1, dtype=torch.float64)
    total = -math.log(2) * (pairs_with_itself * image_weights).sum()
    gradient = torch.zeros_like(scores)
    for rows, columns in _pair_loss_blocks((positive > 0) & (image_weights > 0)[:, None]):
        z = scores[rows]
        gaps = z[:, None, :] - z.gather(1, columns)[:, :, None]
        weights = positive[rows].gather(1, columns)[:, :, None] * negative[rows][:, None, :]
        losses = (F.softplus(gaps, threshold=40) * weights).sum((1, 2), dtype=torch.float64)
        total = total + (losses * image_weights[rows]).sum()
        slopes = gaps.sigmoid_() * weights
        block_gradient = slopes.sum(1).scatter_add_(1, columns, -slopes.sum(2))
        row_weights = image_weights[rows, None].to(block_gradient.dtype)
        gradient.index_add_(0, rows, block_gradient * row_weights)
    return total, torch.where(swap, -gradient, gradient)


def _pair_loss_blocks(is_positive: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield r rows with k positives each and the columns of the positives, ``(r,)`` and ``(r, k)``.

    Each positive is in exactly one block. A block has at most ``PAIRS_PER_BLOCK`` pairs, or the
    pairs of a single positive.
    """
    counts, columns = is_positive.sum(1), is_positive.nonzero()[:, 1]
    first = counts.cumsum(0) - counts
    for count in counts.unique().tolist():
        if not count:
            continue
        rows = (counts == count).nonzero()[:, 0]
        row_columns = columns[first[rows, None] + torch.arange(count, device=rows.device)]
        width = min(count, max(1, PAIRS_PER_BLOCK // is_positive.shape[1]))
        height = max(1, PAIRS_PER_BLOCK // (width * is_positive.shape[1]))
        for block_rows, block_columns in zip(
            rows.split(height), row_columns.split(height), strict=True
        ):
            yield from ((block_rows, part) for part in block_columns.split(width, dim=1))
