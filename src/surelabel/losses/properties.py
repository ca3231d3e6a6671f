"""What can be said of the probabilities behind a loss, by measuring it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.losses import LINK_OF, LOSSES, SET_LOSSES
from surelabel.tables import choose

SHARES = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]  # of positives
SCORES = torch.linspace(-20, 20, 401, dtype=torch.float64)
FARTHEST = 60.0  # score that is looked at
HALVINGS = 80  # of the interval of scores
CLOSE = 1e-6  # a probability to another, a loss to another


@dataclass(frozen=True)
class Properties:
    """What holds of a loss.

    Attributes:
        asymmetric: Whether it treats positives and negatives differently: the least expected loss
            at a share of positives is not the one at the same share of negatives.
        strictly_proper: Whether its best scores are the true probabilities as they are meant to be
            read in training: through its link where that one is strict, through the sigmoid
            where not.
        recoverable: Whether its link gives the true probabilities of all best scores, and
            different ones to different scores.
    """

    asymmetric: bool
    strictly_proper: bool
    recoverable: bool

    def row(self, loss: str) -> str:
        """A row of a table in Markdown, begun with what the loss is called there."""
        answers = (self.asymmetric, self.strictly_proper, self.recoverable)
        return f"| {loss} | {' | '.join('yes' if answer else 'no' for answer in answers)} |"


def properties(name: str, **settings: Any) -> Properties:
    """Find out by minimising the expected loss at many shares of positives.

    Args:
        name: Of an entry of ``LOSSES``.
        settings: Of that loss.

    Raises:
        UnknownName: there is no such loss.
        ConfigError: it has no such setting, or it compares labels, so that no score has a best
            value of its own.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        table 1; their focal loss has two different powers.

    Example:
        >>> properties("focal", gamma_pos=1.0, gamma_neg=4.0)
        Properties(asymmetric=True, strictly_proper=False, recoverable=True)
    """
    if name in SET_LOSSES:
        raise ConfigError(
            f"properties needs a loss of single labels, one of {', '.join(LOSSES)}. Got {name!r}, "
            "which compares labels and fixes no probability: calibrate its scores."
        )
    loss, make_link = choose(LOSSES, name, **settings), LINK_OF[name]
    shares = torch.tensor([SHARES], dtype=torch.float64)
    best = best_scores(loss, shares)
    costs = loss(best, shares)
    link = make_link(**settings) if make_link else Sigmoid()
    recovered = _same(link.logits(best).sigmoid(), shares)
    return Properties(
        asymmetric=not _same(costs, costs.flip(1)),
        strictly_proper=recovered if link.strict else _same(best.sigmoid(), shares),
        recoverable=recovered and bool((link.log_odds(SCORES).diff() > 0).all()),
    )


def best_scores(loss: Callable[..., Tensor], shares: Tensor) -> Tensor:
    """The scores at which the expected loss is least, or where its gradient vanishes.

    Args:
        loss: Of single labels; expected losses are those of graded targets.
        shares: Of positives, between 0 and 1, ``(n, c)``, float64.

    Returns:
        One score each, in [-60, 60], ``(n, c)``.
    """
    low, high = torch.full_like(shares, -FARTHEST), torch.full_like(shares, FARTHEST)
    with torch.enable_grad():
        for _ in range(HALVINGS):
            middle = ((low + high) / 2).requires_grad_()
            (slope,) = torch.autograd.grad(loss(middle, shares).sum(), middle)
            middle = middle.detach()
            low, high = torch.where(slope > 0, low, middle), torch.where(slope > 0, middle, high)
    return low


def _same(found: Tensor, wanted: Tensor) -> bool:
    return bool((found - wanted).abs().max() < CLOSE)
