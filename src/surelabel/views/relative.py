"""Scores of a picture seen against its scores for the other names of the list."""

import math

import torch
from torch import Tensor

from surelabel.errors import InputError

FEWEST = 3  # names; against one other name a score says nothing but which of the two is ahead


def centred(scores: Tensor) -> Tensor:
    """Subtract from each row its mean over the names.

    Args:
        scores: Any real numbers, the names last, ``(…, c)``.

    Returns:
        The same shape, each row with mean 0, in float32 or finer.

    Raises:
        InputError: there are fewer than three names.

    Source:
        none; ours. What a softmax at a high temperature leaves of a row.

    Example:
        >>> centred(torch.tensor([[0.1, 0.2, 0.6]])).round(decimals=4)
        tensor([[-0.2000, -0.1000,  0.3000]])
    """
    scores = _fine(scores)
    check_names(scores)
    return scores - scores.mean(dim=-1, keepdim=True)


def standardised(scores: Tensor) -> Tensor:
    """Centre each row and divide it by its standard deviation over the names.

    Args:
        scores: Any real numbers, the names last, ``(…, c)``.

    Returns:
        The same shape, in float32 or finer; 0 where all scores of a row are the same.

    Raises:
        InputError: there are fewer than three names.

    Source:
        Row standardisation of SPARC (Miller et al., CVPR 2025), with its divisor c - 1.

    Example:
        >>> standardised(torch.tensor([[0.1, 0.2, 0.6], [0.5, 0.5, 0.5]])).round(decimals=4)
        tensor([[-0.7559, -0.3780,  1.1339],
                [ 0.0000,  0.0000,  0.0000]])
    """
    scores = _fine(scores)
    apart = centred(scores)
    size = apart.abs().amax(dim=-1, keepdim=True)
    noise = 8 * torch.finfo(scores.dtype).eps * scores.abs().amax(dim=-1, keepdim=True)
    flat = size <= noise  # what is left is rounding
    apart = torch.where(flat, 0.0, apart / torch.where(flat, 1.0, size))  # squares stay in range
    spread = apart.square().sum(dim=-1, keepdim=True) / (scores.shape[-1] - 1)
    return apart / torch.where(flat, 1.0, spread).sqrt()


def log_odds_of_softmax(scores: Tensor, *, scale: float = 100.0, least: float = 1e-6) -> Tensor:
    """Turn the softmax over the names into log-odds, one a name.

        p_j = exp(scale · s_j) / Σ_k exp(scale · s_k)        z_j = log p_j - log(1 - p_j)

    Args:
        scores: Cosines, the names last, ``(…, c)``; a constant a row changes nothing.
        scale: The factor before the softmax, the inverse of its temperature, > 0.
        least: Probabilities are kept inside [least, 1 - least]; 0 keeps them all, to rank by.

    Returns:
        The same shape, in float32 or finer.

    Raises:
        InputError: there are fewer than three names, or a setting is out of its range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.2, eq. 4.

    Differs:
        Worked out in log space. The authors' code takes the log-odds of the rounded probability,
        whose upper limit in float32 is 13.8023 where 1 - 1e-6 has 13.8155.

    Example:
        >>> log_odds_of_softmax(torch.tensor([[0.20, 0.22, 0.25]])).round(decimals=4)
        tensor([[-5.0486, -3.0067,  2.8731]])
    """
    if not 0 < scale < math.inf or not 0 <= least < 0.5:
        raise InputError(
            f"scale must be above 0 and least in [0, 0.5). Got scale={scale}, least={least}."
        )
    scores = _fine(scores)
    check_names(scores)
    z = scale * scores
    log_p = z.log_softmax(dim=-1)
    ahead = log_p > math.log(0.5)  # one name at most; 1 - p is the sum over the rest
    rest = z.masked_fill(ahead, -math.inf).logsumexp(dim=-1, keepdim=True)
    p = torch.where(ahead, 0.5, log_p.exp())  # 0.5 stands in where the rest is summed
    odds = torch.where(ahead, z - rest, log_p - torch.log1p(-p))
    limit = math.log((1 - least) / least) if least else math.inf
    return odds.clamp(-limit, limit)


def check_names(scores: Tensor) -> None:
    """Refuse scores of one or two names, and scores that are no numbers.

    Raises:
        InputError: there are fewer than three names, or a score is not finite.
    """
    names = scores.shape[-1] if scores.ndim else 0
    if names < FEWEST:
        raise InputError(
            f"Scores relative to the list need {FEWEST} names or more. Got {names}; add names, or "
            "use scores against the reference list."
        )
    check_finite(scores)


def check_finite(scores: Tensor) -> None:
    """Refuse NaN and infinity.

    Raises:
        InputError: a score is one.
    """
    if not scores.isfinite().all():
        raise InputError(
            f"scores must be finite numbers. Got {int((~scores.isfinite()).sum())} that are not; "
            "drop those rows."
        )


def _fine(scores: Tensor) -> Tensor:
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
