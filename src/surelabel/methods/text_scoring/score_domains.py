"""Define score domains, which compare the cosine of a label with the cosines of other texts.

The domain ``cosine`` makes no comparison.

To add a score domain, add one line to ``SCORE_DOMAINS``. The arguments of a score domain are
similarities in nats, that is, cosines times the scale. The arguments contain the similarities of
image vectors with the labels ``(…, c)``, with the background words ``(…, b)`` and with the
reference list ``(…, r)``. A score domain returns the scores of the labels ``(…, c)``. Background
words are only compared with the labels, and are never predicted.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from surelabel.views import (
    center_relative_scores,
    relative_log_odds_of_softmax,
    standardize_relative_scores,
)

ScoreDomain = Callable[[Tensor, Tensor, Tensor], Tensor]


def cosine_score_domain(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Return the similarities of the labels, without a comparison with other texts.

    Source:
        Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, arXiv:2303.15343.
        With the bias of such an encoder, the similarities are log-odds.
    """
    return names


def reference_score_domain(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Subtract the log-mean-exp over the reference list and the background words.

    The score of a label does not depend on the other labels.

    Source:
        None; ours (docs/decisions.md).

    Example:
        >>> everyday = torch.tensor([[1.0, 1.0]])
        >>> reference_score_domain(torch.tensor([[3.0, 0.0]]), torch.zeros(1, 0), everyday)
        tensor([[ 2., -1.]])
    """
    similarities = torch.cat([reference, background], dim=-1)
    return names - similarities.logsumexp(dim=-1, keepdim=True) + math.log(similarities.shape[-1])


def softmax_score_domain(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Return the log-odds of a softmax over the labels and the background words.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.2, eq. 4.

    Differs:
        Probabilities are not clipped at 1e-6, so that different scores do not become equal.
    """
    similarities = torch.cat([names, background], dim=-1)
    log_odds = relative_log_odds_of_softmax(similarities, scale=1.0, min_probability=0.0)
    return log_odds[..., : names.shape[-1]]


def centred_score_domain(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Subtract the mean over the labels and the background words.

    Source:
        None; ours. The result is the limit of ``softmax`` at a high temperature, up to a constant
        factor and a constant offset.
    """
    return center_relative_scores(torch.cat([names, background], dim=-1))[..., : names.shape[-1]]


def standardized_score_domain(names: Tensor, background: Tensor, reference: Tensor) -> Tensor:
    """Subtract the mean over labels and background words, and divide by the standard deviation.

    Source:
        Row standardization of SPARC (Miller et al., CVPR 2025).
    """
    return standardize_relative_scores(torch.cat([names, background], dim=-1))[
        ..., : names.shape[-1]
    ]


SCORE_DOMAINS: dict[str, ScoreDomain] = {
    "centred": centred_score_domain,
    "cosine": cosine_score_domain,
    "reference": reference_score_domain,
    "softmax": softmax_score_domain,
    "standardized": standardized_score_domain,
}
INDEPENDENT_SCORE_DOMAINS = ("cosine", "reference")  # no other label changes the score of a label
