"""Compute scores of a label relative to the scores of all labels for the same image."""

import math

import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.errors import InputError

MIN_LABELS = 3  # with two labels, relative scores only show which score is larger


def center_relative_scores(scores: Tensor) -> Tensor:
    """Subtract from each row of scores its mean over the labels.

    Args:
        scores: Finite scores with labels in the last axis, ``(…, c)``.

    Returns:
        Centred scores of the shape of ``scores``, in float32 or wider.

    Raises:
        InputError: If there are fewer than three labels, or a score is not finite.

    Source:
        None; ours. At a high temperature, the log-odds of a softmax approach these scores, up to a
        constant factor and a constant offset.

    Example:
        >>> center_relative_scores(torch.tensor([[0.1, 0.2, 0.6]])).round(decimals=4)
        tensor([[-0.2000, -0.1000,  0.3000]])
    """
    scores = _relative_scores_to_float32(scores)
    check_relative_scores(scores)
    return scores - scores.mean(dim=-1, keepdim=True)


def standardize_relative_scores(scores: Tensor) -> Tensor:
    """Centre each row of scores and divide it by its standard deviation over the labels.

    Args:
        scores: Finite scores with labels in the last axis, ``(…, c)``.

    Returns:
        Standardized scores of the shape of ``scores``, in float32 or wider. If all scores of a row
        are equal, its standardized scores are 0.

    Raises:
        InputError: If there are fewer than three labels, or a score is not finite.

    Source:
        Row standardization of SPARC (Miller et al., CVPR 2025), where the variance of c scores has
        the divisor c - 1.

    Example:
        >>> scores = torch.tensor([[0.1, 0.2, 0.6], [0.5, 0.5, 0.5]])
        >>> standardize_relative_scores(scores).round(decimals=4)
        tensor([[-0.7559, -0.3780,  1.1339],
                [ 0.0000,  0.0000,  0.0000]])
    """
    scores = _relative_scores_to_float32(scores)
    centred = center_relative_scores(scores)
    size = centred.abs().amax(dim=-1, keepdim=True)
    noise = 8 * torch.finfo(scores.dtype).eps * scores.abs().amax(dim=-1, keepdim=True)
    is_constant = size <= noise  # only rounding errors remain
    centred = torch.where(  # largest value 1, so that squares stay finite
        is_constant, 0.0, centred / torch.where(is_constant, 1.0, size)
    )
    variance = centred.square().sum(dim=-1, keepdim=True) / (scores.shape[-1] - 1)
    return centred / torch.where(is_constant, 1.0, variance).sqrt()


def relative_log_odds_of_softmax(
    scores: Tensor, *, scale: float = 100.0, min_probability: float = 1e-6
) -> Tensor:
    """Return the log-odds of the softmax probability of each label.

        p_j = exp(scale · s_j) / Σ_k exp(scale · s_k)        z_j = log p_j - log(1 - p_j)

    In these formulas, s_j is the score of label j, p_j its probability and z_j its log-odds. The
    sum is over all labels k.

    Args:
        scores: Cosines with labels in the last axis, ``(…, c)``. A constant added to a row has no
            effect.
        scale: Factor of the scores before the softmax, the inverse of the temperature, > 0.
        min_probability: Lower clipping limit of the probabilities, in [0, 0.5); the upper limit is
            ``1 - min_probability``. If 0, probabilities are not clipped; rankings need the value 0,
            because clipping makes scores equal.

    Returns:
        Log-odds of the shape of ``scores``, in float32 or wider.

    Raises:
        InputError: If there are fewer than three labels, a score is not finite, or a setting is out
            of range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.2, eq. 4.

    Differs:
        The log-odds are computed in log space. The authors' code computes them from probabilities
        in float32, and rounding reduces the upper limit to 13.8023. The exact log-odds of 1 - 1e-6
        are 13.8155.

    Example:
        >>> relative_log_odds_of_softmax(torch.tensor([[0.20, 0.22, 0.25]])).round(decimals=4)
        tensor([[-5.0486, -3.0067,  2.8731]])
    """
    if not 0 < scale < math.inf or not 0 <= min_probability < 0.5:
        raise InputError(
            "scale must be above 0 and min_probability in [0, 0.5); "
            f"got scale={scale}, min_probability={min_probability}."
        )
    scores = _relative_scores_to_float32(scores)
    check_relative_scores(scores)
    z = scale * scores
    log_p = z.log_softmax(dim=-1)
    is_dominant = log_p > math.log(0.5)  # at most one label; there 1 - p is the sum of the others
    log_others = z.masked_fill(is_dominant, -math.inf).logsumexp(dim=-1, keepdim=True)
    p = torch.where(is_dominant, 0.5, log_p.exp())  # 0.5 is a placeholder for the dominant label
    log_odds = torch.where(is_dominant, z - log_others, log_p - torch.log1p(-p))
    limit = math.log((1 - min_probability) / min_probability) if min_probability else math.inf
    return log_odds.clamp(-limit, limit)


def check_relative_scores(scores: Tensor) -> None:
    """Check that scores are finite and have at least three labels.

    Raises:
        InputError: If there are fewer than three labels, or a score is not finite.
    """
    n_labels = scores.shape[-1] if scores.ndim else 0
    if n_labels < MIN_LABELS:
        raise InputError(
            f"Relative scores need {MIN_LABELS} labels or more; got {n_labels}. Add labels, or "
            "use scores against the reference list."
        )
    check_finite_relative_scores(scores)


def check_finite_relative_scores(scores: Tensor) -> None:
    """Check that no score is NaN or infinite.

    While ``torch.export`` records the computation, values do not exist and are not checked.

    Raises:
        InputError: If a score is not finite.
    """
    if torch.compiler.is_exporting():
        return
    n_invalid = int((~scores.isfinite()).sum())
    if n_invalid:
        raise InputError(
            f"scores must be finite; got {format_count(n_invalid, 'non-finite score')}. "
            "Remove the rows with NaN or infinity."
        )


def _relative_scores_to_float32(scores: Tensor) -> Tensor:
    """Return the scores in float32, or in their own dtype if it is wider."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
