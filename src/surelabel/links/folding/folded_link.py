"""Append a link to a head, for serving software that applies a sigmoid to the model output."""

from typing import Any

import numpy as np
from scipy.special import expit, logit
from torch import Tensor, nn

from surelabel.errors import ConfigError, InputError
from surelabel.links.interface import Link
from surelabel.links.sigmoid import Sigmoid


class HeadWithLink(nn.Module):
    """Apply a head and then the link of the head, and return logits in [-40, 40].

    Attributes:
        head: Module that computes the scores.
        folded_link: Link that converts the scores to logits.
        link: Sigmoid link, because the output of this module is log-odds.
    """

    def __init__(self, head: nn.Module, folded_link: Link):
        super().__init__()
        self.head, self.folded_link, self.link = head, folded_link, Sigmoid()

    def forward(self, features: Any) -> Tensor:
        """Return the logits of the scores that the head computes, in float32 or float64."""
        scores: Tensor = self.head(features)
        return self.folded_link.logits(scores)


def fold_link(head: nn.Module, link: Link) -> HeadWithLink:
    """Append a link to a head, so that the sigmoid of the output is the probability.

    The head is not copied. For each label, the order of the images does not change, but different
    scores whose logits are clipped or rounded to one value become ties. The names of the parameters
    of the head get the prefix ``head.``.

    Args:
        head: Module that computes scores.
        link: Link that converts the scores of the head to logits.

    Raises:
        ConfigError: If the head or one of its submodules is a ``HeadWithLink``.

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
            "head must return scores; got a head with a folded link, which returns logits. "
            "Use this head without fold_link, or fold the link into the original head."
        )
    return HeadWithLink(head, link)


def score_threshold(link: Link, probability: float) -> float:
    """Return the score threshold that is equivalent to a threshold on the probability.

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
    """Return the threshold on sigmoid(score) that is equivalent to a threshold on the probability.

    Use this threshold in serving software that applies a sigmoid to scores that are not log-odds.

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
