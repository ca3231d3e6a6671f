"""Score domains: the reference against which the cosine of a label is measured.

Add one line to ``SCORE_DOMAINS`` for a new one. Each takes similarities in nats (cosines times the
scale) of the same vectors: with the labels ``(…, c)``, with background words ``(…, b)`` and with
the reference list ``(…, r)``. It returns scores of the labels ``(…, c)``. Background words take a
share of the image in a softmax and are never predicted.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from surelabel.views import center_scores, log_odds_of_softmax, standardize_scores

ScoreDomain = Callable[[Tensor, Tensor, Tensor], Tensor]


def reference(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Subtract the log-mean-exp over the reference list; labels do not affect each other.

    Source:
        none; ours (docs/decisions.md).

    Example:
        >>> everyday = torch.tensor([[1.0, 1.0]])
        >>> reference(torch.tensor([[3.0, 0.0]]), torch.zeros(1, 0), everyday)
        tensor([[ 2., -1.]])
    """
    similarities = torch.cat([reference, background], dim=-1)
    return names - similarities.logsumexp(dim=-1, keepdim=True) + math.log(similarities.shape[-1])


def softmax(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Return the log-odds of a softmax over labels and background words; labels compete.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.2, eq. 4.

    Differs:
        Probabilities are not clipped at 1e-6, so that no two scores become equal.
    """
    similarities = torch.cat([names, background], dim=-1)
    log_odds = log_odds_of_softmax(similarities, scale=1.0, min_probability=0.0)
    return log_odds[..., : names.shape[-1]]


def centred(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Subtract the mean over the labels and the background words.

    Source:
        none; ours. It is the limit of a softmax at a high temperature, up to a constant factor.
    """
    return center_scores(torch.cat([names, background], dim=-1))[..., : names.shape[-1]]


def standardized(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Subtract the mean over labels and background words, and divide by their deviation.

    Source:
        Row standardization of SPARC (Miller et al., CVPR 2025).
    """
    return standardize_scores(torch.cat([names, background], dim=-1))[..., : names.shape[-1]]


SCORE_DOMAINS: dict[str, ScoreDomain] = {
    "centred": centred,
    "reference": reference,
    "softmax": softmax,
    "standardized": standardized,
}
