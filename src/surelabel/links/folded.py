"""A link built into the head, for stacks that take the sigmoid of whatever a model gives."""

from typing import Any

import numpy as np
from scipy.special import expit, logit
from torch import Tensor, nn

from surelabel.errors import ConfigError, InputError
from surelabel.links.protocol import Link
from surelabel.links.sigmoid import Sigmoid


class Folded(nn.Module):
    """A head with its link behind it: what comes out are logits in [-40, 40].

    Attributes:
        head: What gives the scores.
        behind: The link that was folded in.
        link: The link of what comes out now: the plain sigmoid.
    """

    def __init__(self, head: nn.Module, behind: Link):
        super().__init__()
        self.head, self.behind, self.link = head, behind, Sigmoid()

    def forward(self, features: Any) -> Tensor:
        """The logits of the scores that the head gives, float32 at least."""
        scores: Tensor = self.head(features)
        return self.behind.logits(scores)


def fold(head: nn.Module, link: Link) -> Folded:
    """Build a link into a head, so that any sigmoid stack serves its probabilities.

    The head is not copied. Every label keeps its ranking; parameters and their names stay as they
    are, one level deeper, under ``head``.

    Raises:
        ConfigError: the head is folded already, or holds a part that is.

    Example:
        >>> import torch
        >>> from surelabel.links import SPA
        >>> head = torch.nn.Linear(2, 1)
        >>> served = fold(head, SPA())(torch.zeros(1, 2)).sigmoid()
        >>> torch.equal(served, SPA().logits(head(torch.zeros(1, 2))).sigmoid())
        True
    """
    if any(isinstance(part, Folded) for part in head.modules()):
        raise ConfigError(
            "The head must give scores. Got one whose link is folded in already, so that it gives "
            "logits: take it as it is, or fold the head that it was made from."
        )
    return Folded(head, link)


def score_threshold(link: Link, probability: float) -> float:
    """The score at which a link gives this probability, for graphs that end in scores.

    Raises:
        InputError: ``probability`` is not between 0 and 1.

    Example:
        >>> from surelabel.links import SPA
        >>> round(score_threshold(SPA(), 0.5), 4)
        0.9521
    """
    if not 0 < probability < 1:
        raise InputError(f"probability must lie between 0 and 1. Got {probability}.")
    return float(link.scores(np.array([logit(probability)]))[0])


def sigmoid_threshold(link: Link, probability: float) -> float:
    """What to ask of the sigmoid of a score where this probability is wanted.

    For stacks that take the sigmoid of scores that are no log-odds and cannot be changed.

    Raises:
        InputError: ``probability`` is not between 0 and 1.

    Example:
        >>> from surelabel.links import SPA
        >>> round(sigmoid_threshold(SPA(), 0.5), 4)
        0.7215
    """
    return float(expit(score_threshold(link, probability)))
