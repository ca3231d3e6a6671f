"""Score domains: what a cosine with a name is held against.

Add one line to ``SCORE_DOMAINS`` for a new one. Each takes similarities in nats (cosines times the
scale) of the same vectors: with the names ``(…, c)``, with background words ``(…, b)`` and with the
reference list ``(…, r)``; it gives scores of the names ``(…, c)``. A background word takes its
share of a picture and is never an answer.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from surelabel.views import centred as less_the_mean
from surelabel.views import log_odds_of_softmax
from surelabel.views import standardised as in_deviations

Domain = Callable[[Tensor, Tensor, Tensor], Tensor]


def reference(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Above the log-mean-exp of everyday things; a name's score does not change with the others.

    Source:
        none; ours (docs/decisions.md).

    Example:
        >>> everyday = torch.tensor([[1.0, 1.0]])
        >>> reference(torch.tensor([[3.0, 0.0]]), torch.zeros(1, 0), everyday)
        tensor([[ 2., -1.]])
    """
    usual = torch.cat([reference, background], dim=-1)
    return names - usual.logsumexp(dim=-1, keepdim=True) + math.log(usual.shape[-1])


def softmax(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Log-odds of a softmax over the names and the background: what makes names compete.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.2, eq. 4.

    Differs:
        No probability is cut off at 1e-6, so that no two scores become the same.
    """
    whole = torch.cat([names, background], dim=-1)
    return log_odds_of_softmax(whole, scale=1.0, least=0.0)[..., : names.shape[-1]]


def centred(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Less the mean over the names and the background.

    Source:
        none; ours. What a softmax at a high temperature leaves of a row.
    """
    return less_the_mean(torch.cat([names, background], dim=-1))[..., : names.shape[-1]]


def standardised(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Deviations from the mean over the names and the background, in standard deviations.

    Source:
        Row standardisation of SPARC (Miller et al., CVPR 2025).
    """
    return in_deviations(torch.cat([names, background], dim=-1))[..., : names.shape[-1]]


SCORE_DOMAINS: dict[str, Domain] = {
    "centred": centred,
    "reference": reference,
    "softmax": softmax,
    "standardised": standardised,
}
