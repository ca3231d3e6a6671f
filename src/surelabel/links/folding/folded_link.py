"""Append a link to a head, for serving stacks that apply a sigmoid to the model output."""

from typing import Any

import numpy as np
from scipy.special import expit, logit
from torch import Tensor, nn

from surelabel.errors import ConfigError, InputError
from surelabel.links.interface import Link
from surelabel.links.sigmoid import Sigmoid


class HeadWithLink(nn.Module):
    """A head followed by its link; the output is logits in [-40, 40].

    Attributes:
        head: Module that computes the scores.
        folded_link: Link that converts the scores to logits.
        link: Link of the output, the plain sigmoid.
    """

    def __init__(self, head: nn.Module, folded_link: Link):
        super().__init__()
        self.head, self.folded_link, self.link = head, folded_link, Sigmoid()

    def forward(self, features: Any) -> Tensor:
        """Return the logits of the scores of the head, in float32 or float64."""
        scores: Tensor = self.head(features)
        return self.folded_link.logits(scores)


def fold_link(head: nn.Module, link: Link) -> HeadWithLink:
    """Append a link to a head, so that the sigmoid of the output is the probability.

    The head is not copied. The ranking of each label is unchanged. The names of the parameters
    get the prefix ``head.``.

    Args:
        head: Module that computes scores.
        link: Link of these scores.

    Raises:
        ConfigError: If the head, or one of its submodules, contains a folded link.

    Example:
        >>> import torch
        >>> from surelabel.links import SPA
        >>> head = torch.nn.Linear(2, 1)
        >>> served = fold_link(head, SPA())(torch.zeros(1, 2)).sigmoid()
        >>> torch.equal(served, SPA().logits(head(torch.zeros(1, 2))).sigmoid())
        True
    """
    if any(isinstance(module, HeadWithLink) for module in head.modules()):
        raise ConfigError(
            "head must return scores; got a head whose link is folded in already, so that it "
            "returns logits. Use it without fold_link, or fold the link into the original head."
        )
    return HeadWithLink(head, link)


def score_threshold(link: Link, probability: float) -> float:
    """Return the score whose probability is ``probability``, for models that output scores.

    Args:
        link: Link of the scores.
        probability: Threshold on the probability, between 0 and 1.

    Raises:
        InputError: If ``probability`` is not between 0 and 1.

    Example:
        >>> from surelabel.links import SPA
        >>> round(score_threshold(SPA(), 0.5), 4)
        0.9521
    """
    if not 0 < probability < 1:
        raise InputError(f"probability must be between 0 and 1, both excluded; got {probability}.")
    return float(link.scores(np.array([logit(probability)]))[0])


def sigmoid_threshold(link: Link, probability: float) -> float:
    """Return the sigmoid of the score whose probability is ``probability``.

    It is the threshold for serving stacks that apply a sigmoid to scores that are not log-odds.

    Args:
        link: Link of the scores.
        probability: Threshold on the probability, between 0 and 1.

    Raises:
        InputError: If ``probability`` is not between 0 and 1.

    Example:
        >>> from surelabel.links import SPA
        >>> round(sigmoid_threshold(SPA(), 0.5), 4)
        0.7215
    """
    return float(expit(score_threshold(link, probability)))
