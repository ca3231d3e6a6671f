"""Measure properties of losses numerically: asymmetry, strict propriety and recoverability."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.losses import LOSSES, SET_LOSSES
from surelabel.losses.properties.loss_link import make_loss_link
from surelabel.tables import configure_table_entry

POSITIVE_SHARES = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
SCORE_GRID = torch.linspace(-20, 20, 401, dtype=torch.float64)
MAX_SCORE = 60.0  # bound of the search for the minimizing score
BISECTION_STEPS = 80
TOLERANCE = 1e-6  # largest difference of equal probabilities and of equal losses


@dataclass(frozen=True)
class LossProperties:
    """Properties of a loss, which are measured numerically.

    Attributes:
        asymmetric: True if the loss treats positives and negatives differently. In this case, the
            minimal expected loss at a fraction of positives differs from that at an equal fraction
            of negatives.
        strictly_proper: True if the link of the loss converts the scores that minimize the expected
            loss to the true probabilities. If the link is not strictly increasing, or the loss has
            no link, the sigmoid is used instead of the link.
        recoverable: True if the link converts the scores that minimize the expected loss to the
            true probabilities, and different scores to different probabilities. If the loss has no
            link, the sigmoid is used.
    """

    asymmetric: bool
    strictly_proper: bool
    recoverable: bool

    def markdown_row(self, title: str) -> str:
        """Return a Markdown table row: the title of the loss, and yes or no for each property."""
        answers = (self.asymmetric, self.strictly_proper, self.recoverable)
        return f"| {title} | {' | '.join('yes' if answer else 'no' for answer in answers)} |"


def measure_loss_properties(name: str, **settings: Any) -> LossProperties:
    """Measure the properties of a loss from the scores that minimize the expected loss.

    The expected loss is minimized for 11 fractions of positives from 0.001 to 0.999.

    Args:
        name: Entry of ``LOSSES``.
        settings: Settings of the loss.

    Raises:
        UnknownName: If ``name`` is not an entry of ``LOSSES`` or ``SET_LOSSES``.
        ConfigError: If the loss does not accept one of the settings, or if ``name`` is an entry of
            ``SET_LOSSES``. A loss of ``SET_LOSSES`` compares labels, so a single score has no
            optimal value.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        table 1. The focal loss in this table has different focusing parameters for positives and
        negatives.

    Example:
        >>> measure_loss_properties("focal", gamma_pos=1.0, gamma_neg=4.0)
        LossProperties(asymmetric=True, strictly_proper=False, recoverable=True)
    """
    if name in SET_LOSSES:
        raise ConfigError(
            f"The loss must be a per-label loss ({', '.join(LOSSES)}); got {name!r}, which "
            f"compares labels. Fit a calibrator to the scores to obtain probabilities."
        )
    loss = configure_table_entry(LOSSES, name, **settings)
    shares = torch.tensor([POSITIVE_SHARES], dtype=torch.float64)
    scores = minimizers_for_loss_properties(loss, shares)
    minima = loss(scores, shares)
    link = make_loss_link(name, **settings) or Sigmoid()
    is_recovered = _loss_property_values_agree(link.logits(scores).sigmoid(), shares)
    is_proper_by_sigmoid = _loss_property_values_agree(scores.sigmoid(), shares)
    return LossProperties(
        asymmetric=not _loss_property_values_agree(minima, minima.flip(1)),
        strictly_proper=is_recovered if link.is_strictly_increasing else is_proper_by_sigmoid,
        recoverable=is_recovered and bool((link.log_odds(SCORE_GRID).diff() > 0).all()),
    )


def minimizers_for_loss_properties(loss: Callable[..., Tensor], shares: Tensor) -> Tensor:
    """Return the scores that minimize the expected loss, by bisection on the gradient.

    Args:
        loss: Function in ``LOSSES``, called as ``loss(scores, targets)``. With fractions of
            positives as targets, the function returns the expected loss.
        shares: Fractions of positives, between 0 and 1, of ``n`` images and ``c`` labels,
            ``(n, c)``, float64.

    Returns:
        Score that minimizes the expected loss for each fraction of positives, in [-60, 60],
        ``(n, c)``.
    """
    low, high = torch.full_like(shares, -MAX_SCORE), torch.full_like(shares, MAX_SCORE)
    with torch.enable_grad():
        for _ in range(BISECTION_STEPS):
            middle = ((low + high) / 2).requires_grad_()
            (slope,) = torch.autograd.grad(loss(middle, shares).sum(), middle)
            middle = middle.detach()
            low, high = torch.where(slope > 0, low, middle), torch.where(slope > 0, middle, high)
    return low


def _loss_property_values_agree(actual: Tensor, expected: Tensor) -> bool:
    """Return True if all elements are equal within the tolerance."""
    return bool((actual - expected).abs().max() < TOLERANCE)
