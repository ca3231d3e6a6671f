"""Raise the highest probabilities of an image linearly towards 1, without changing their order."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.pseudolabels.targets.input_validation import (
    check_pseudolabel_count,
    check_pseudolabel_share,
    validate_pseudolabel_image_scores,
)
from surelabel.pseudolabels.targets.top_k_mask import mask_top_k


def linear_correction(scores: Tensor, *, top_k: int = 1, floor: float = 0.1) -> Tensor:
    """Raise the highest probabilities of each image linearly, from [0, 1] to [floor, 1].

        g(z) = log(a + (1 - a) s) - log((1 - a)(1 - s))     s = sigmoid(z)

    z is the log-odds of a label, and a is ``floor``.

    Args:
        scores: Finite log-odds, ``(n, c)``.
        top_k: Number of labels per image whose scores are raised (beta in the paper), >= 0. If only
            some of several equal scores would fit, none of them is changed.
        floor: Result for a probability of 0 (alpha in the paper, a in the formula), in [0, 1). If
            0, the scores are unchanged.

    Returns:
        Corrected log-odds ``(n, c)``, in float32 or wider.

    Raises:
        InputError: If ``scores`` are not of shape ``(n, c)``, or a score is not finite.
        ConfigError: If ``top_k`` is not a whole number >= 0, or ``floor`` is outside [0, 1).

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, eq. 22.

    Differs:
        The result is computed in closed form, without clipping. ``top_k`` is always a count; see
        :func:`square_root_correction`.

    Example:
        >>> linear_correction(torch.tensor([[0.0, -2.0, 3.0]])).round(decimals=4)
        tensor([[ 0.0000, -2.0000,  3.1103]])
    """
    check_pseudolabel_count("top_k", top_k)
    check_pseudolabel_share("floor", floor)
    z = validate_pseudolabel_image_scores(scores)
    if not floor:
        return z
    log_floor = torch.full_like(z, math.log(floor))
    log_p = torch.logaddexp(log_floor, math.log1p(-floor) + F.logsigmoid(z))
    raised = log_p - math.log1p(-floor) - F.logsigmoid(-z)
    return torch.where(mask_top_k(z, top_k), raised, z)
