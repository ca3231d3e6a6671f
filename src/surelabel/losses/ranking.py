"""Compute a pairwise ranking loss with a margin between positives and negatives of an image."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


def ranking(
    scores: Tensor, targets: Tensor, known: Tensor, *, margin: float = 1.0, scale: float = 1.0
) -> Tensor:
    """Compute the pairwise hinge loss between the positives and negatives of each image.

        loss of an image: Σ over t != s of  y_t · (1 - y_s) · max(0, margin - scale · (x_t - x_s))
        loss:             mean over images

    In these formulas, y_t is the target and x_t is the score of label t, and the sum is over all
    pairs of known labels t and s. A constant added to all scores of an image does not change the
    loss, so no link converts the scores to log-odds.

    Args:
        scores: Finite scores (x) of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``; unknown targets are ignored.
        margin: Smallest scaled score difference at which the loss of a pair is 0 (m), >= 0.
        scale: Factor of the scores (s), > 0.

    Returns:
        Loss, a scalar. The type is float32, or float64 if ``scores`` is float64.

    Raises:
        InputError: If ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: If ``margin`` or ``scale`` is out of range.

    Source:
        The ranking loss of Guo et al., Texts as Images in Prompt Tuning for Multi-Label Image
        Recognition, CVPR 2023, arXiv:2211.12739.

    Differs:
        The scores of an image are sorted, and cumulative sums replace the sum over all pairs. The
        time per image is therefore proportional to c · log c instead of c². Graded targets (between
        0 and 1) are the probabilities of independent labels, and the loss is the expected value.
        The default of ``scale`` is 1, as in the experiments of Guo et al.; the default in their
        code is 2.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 1.5, 0.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> ranking(scores, targets, torch.ones(1, 3, dtype=torch.bool))
        tensor(0.5000)
    """
    if not (math.isfinite(margin) and margin >= 0):
        raise ConfigError(f"margin must be a finite number >= 0; got {margin}. The default is 1.")
    if not (math.isfinite(scale) and scale > 0):
        raise ConfigError(f"scale must be a finite number > 0; got {scale}. Use 1 for no effect.")
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    x = scale * scores.double()  # long cumulative sums are inexact in float32
    positive = torch.where(known, targets.double(), 0.0)
    negative = torch.where(known, 1 - targets.double(), 0.0)
    ascending, order = x.sort(dim=1)
    weights = negative.gather(1, order)
    edge = x - margin  # the pairs of a positive with negatives above its edge have a loss
    first = torch.searchsorted(ascending.detach(), edge.detach(), right=True)
    weight_sums = _ranking_loss_suffix_sums(weights).gather(1, first)
    score_sums = _ranking_loss_suffix_sums(weights * ascending).gather(1, first)
    pair_with_itself = margin * negative
    losses = positive * (score_sums - edge * weight_sums - pair_with_itself)
    mean = losses.sum() / max(len(scores), 1)
    return mean.to(torch.promote_types(scores.dtype, torch.float32))


def _ranking_loss_suffix_sums(rows: Tensor) -> Tensor:
    """Return the sums from each position to the end of the row, then 0, ``(n, c + 1)``."""
    return F.pad(rows.flip(1).cumsum(1).flip(1), (0, 1))
