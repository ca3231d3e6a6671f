"""Properties of losses, measured numerically: asymmetry, strict propriety, recoverability."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.losses import LINK_OF_LOSS, LOSSES, SET_LOSSES
from surelabel.tables import configure_entry

POSITIVE_SHARES = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
SCORE_GRID = torch.linspace(-20, 20, 401, dtype=torch.float64)
MAX_SCORE = 60.0  # bound of the search for the minimizing score
BISECTION_STEPS = 80
TOLERANCE = 1e-6  # of probabilities and of losses


@dataclass(frozen=True)
class LossProperties:
    """Properties of a loss.

    Attributes:
        asymmetric: True if the loss treats positives and negatives differently: the minimal
            expected loss at a share of positives differs from that at the same share of negatives.
        strictly_proper: True if the minimizing scores give the true probabilities, through the
            link of the loss if that link is strict, otherwise through the sigmoid.
        recoverable: True if the link gives the true probabilities of all minimizing scores, and
            different probabilities for different scores.
    """

    asymmetric: bool
    strictly_proper: bool
    recoverable: bool

    def markdown_row(self, title: str) -> str:
        """Return a row of a Markdown table: the title of the loss, then yes or no."""
        answers = (self.asymmetric, self.strictly_proper, self.recoverable)
        return f"| {title} | {' | '.join('yes' if answer else 'no' for answer in answers)} |"


def measure_loss_properties(name: str, **settings: Any) -> LossProperties:
    """Measure the properties of a loss by minimizing its expectation at many shares of positives.

    Args:
        name: Entry of ``LOSSES``.
        settings: Settings of the loss.

    Raises:
        UnknownName: If there is no such loss.
        ConfigError: If the loss has no such setting, or compares labels, so that a single score
            has no optimal value.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        table 1; their focal loss has two different powers.

    Example:
        >>> measure_loss_properties("focal", gamma_pos=1.0, gamma_neg=4.0)
        LossProperties(asymmetric=True, strictly_proper=False, recoverable=True)
    """
    if name in SET_LOSSES:
        raise ConfigError(
            f"The loss must be one of single labels, {', '.join(LOSSES)}; got {name!r}, which "
            f"compares labels and determines no probability. Fit a calibrator to its scores."
        )
    loss, make_link = configure_entry(LOSSES, name, **settings), LINK_OF_LOSS[name]
    shares = torch.tensor([POSITIVE_SHARES], dtype=torch.float64)
    scores = minimize_expected_loss(loss, shares)
    minima = loss(scores, shares)
    link = make_link(**settings) if make_link else Sigmoid()
    is_recovered = _all_close(link.logits(scores).sigmoid(), shares)
    is_proper_by_sigmoid = _all_close(scores.sigmoid(), shares)
    return LossProperties(
        asymmetric=not _all_close(minima, minima.flip(1)),
        strictly_proper=is_recovered if link.is_strictly_increasing else is_proper_by_sigmoid,
        recoverable=is_recovered and bool((link.log_odds(SCORE_GRID).diff() > 0).all()),
    )


def minimize_expected_loss(loss: Callable[..., Tensor], shares: Tensor) -> Tensor:
    """Return the scores that minimize the expected loss, by bisection on its gradient.

    Args:
        loss: Loss of single labels; its expectation is its value at graded targets.
        shares: Shares of positives, between 0 and 1, ``(n, c)``, float64.

    Returns:
        Minimizing score of each share, in [-60, 60], ``(n, c)``.
    """
    low, high = torch.full_like(shares, -MAX_SCORE), torch.full_like(shares, MAX_SCORE)
    with torch.enable_grad():
        for _ in range(BISECTION_STEPS):
            middle = ((low + high) / 2).requires_grad_()
            (slope,) = torch.autograd.grad(loss(middle, shares).sum(), middle)
            middle = middle.detach()
            low, high = torch.where(slope > 0, low, middle), torch.where(slope > 0, middle, high)
    return low


def _all_close(actual: Tensor, expected: Tensor) -> bool:
    """Return True if all elements are equal within the tolerance."""
    return bool((actual - expected).abs().max() < TOLERANCE)
