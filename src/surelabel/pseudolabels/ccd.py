"""Pseudo-labels divided by how sure the encoder is of each name when it is sure."""

import math

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.pseudolabels.checked import check_share, whole_and_parts


def ccd(
    scores: Tensor, *, floor: float = 0.05, entropy_limit: float = 2.0, kept: float = 0.2
) -> Tensor:
    """Give every name the same standing: 1 where it is as probable as where it comes first.

        b_j = mean of p_ij over the pictures whose first name is j and whose entropy is small
        y_ij = min(max(p_ij, floor) / b_j, 1)
        with parts: y <- min(kept · y + (1 - kept) · max(max_k p^k, floor) / b, 1)

    The targets of a picture depend on all pictures, through b.

    Args:
        scores: Log-odds of a softmax over the names, of whole pictures ``(n, c)`` or with their
            parts behind them ``(n, t, c)``.
        floor: Least probability, in [0, 1).
        entropy_limit: Pictures above it are left out of b, >= 0, in nats.
        kept: What the targets of the whole picture count beside its parts, in [0, 1).

    Returns:
        Targets in [0, 1], ``(n, c)``, in float32 or finer.

    Raises:
        InputError: ``scores`` have another shape, or one is not finite.
        ConfigError: a setting is out of its range.

    Source:
        CCD, CVPR 2025, as its authors' code has it, github.com/k0u-id/CCD.

    Differs:
        The parts are any views; the authors cut them where a student's activation is. A name that
        comes first nowhere has b = 1, where their code divides zero by zero. Names that tie for
        the first place all count as first.

    Example:
        >>> p = torch.tensor([[0.80, 0.15, 0.05], [0.60, 0.30, 0.10], [0.10, 0.50, 0.40]])
        >>> ccd(p.logit()).round(decimals=4)
        tensor([[1.0000, 0.3000, 0.0500],
                [0.8571, 0.6000, 0.1000],
                [0.1429, 1.0000, 0.4000]])
    """
    check_share("floor", floor)
    check_share("kept", kept)
    if not 0 <= entropy_limit < math.inf:
        raise ConfigError(f"entropy_limit must be in nats, 0 or more. Got {entropy_limit!r}.")
    whole, parts = whole_and_parts(scores)
    sureness = _sureness(whole.sigmoid(), entropy_limit)
    targets = (whole.sigmoid().clamp(min=floor) / sureness).clamp(max=1)
    if parts is None:
        return targets
    seen = parts.amax(dim=1).sigmoid().clamp(min=floor) / sureness
    return (kept * targets + (1 - kept) * seen).clamp(max=1)


def _sureness(p: Tensor, entropy_limit: float) -> Tensor:
    """Mean probability of each name where it comes first, ``(c,)``; 1 where it never does."""
    clear = torch.special.entr(p).sum(dim=1, keepdim=True) <= entropy_limit
    first = (p == p.amax(dim=1, keepdim=True)) & clear
    count, total = first.sum(dim=0), torch.where(first, p, 0.0).sum(dim=0)
    found = (count > 0) & (total > 0)
    return torch.where(found, total, 1.0) / torch.where(found, count, 1)
