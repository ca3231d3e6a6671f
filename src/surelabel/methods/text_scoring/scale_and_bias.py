"""Learn a scale and a bias that all labels share, so that scores of new labels are log-odds."""

import torch
from torch import Tensor, nn

from surelabel.calibration import Platt
from surelabel.links import Link


class ScaleAndBias(nn.Module):
    """Compute ``a · scores + b`` with a learned scale a > 0 and a learned bias b.

    All labels share a and b. If the loss is proper, training a and b calibrates the scores,
    including those of labels that are added after the fit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_slope = nn.Parameter(torch.zeros(()))
        self.bias = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def initialize(self, scores: Tensor, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scale and bias by Platt scaling of the scores, converted by ``link``.

        See ``initial_scale_and_bias``.
        """
        slope, bias = initial_scale_and_bias(scores, targets, known, link)
        self.log_slope.copy_(slope.log())
        self.bias.copy_(bias)

    def forward(self, scores: Tensor) -> Tensor:
        """Return ``a · scores + b``, ``(n, c)``."""
        return self.log_slope.exp() * scores + self.bias


def initial_scale_and_bias(
    scores: Tensor, targets: Tensor, known: Tensor, link: Link, *, min_slope: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """Return the scale and the bias with which scores approximate the scores of Platt scaling.

    If training started with scale 1 and bias 0, the first steps would change the other parameters
    only to correct the bias. Platt scaling returns log-odds, which ``link`` converts to scores.
    Scale and bias are fitted to these scores by least squares, which is exact if the link is
    linear.

    Args:
        scores: Scores of n images for c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        link: Link of the loss.
        min_slope: Smallest scale, > 0.

    Returns:
        Scale, at least ``min_slope``, and bias, both of shape ``()``.

    Raises:
        InputError: If the known targets contain no positive or no negative target, or a score is
            not finite.
    """
    platt = Platt().fit(scores.numpy(), targets.numpy(), known.numpy())
    link_scores = link.scores(platt.slope_ * scores + platt.shift_)
    centred = scores - scores.mean()
    slope = (centred * link_scores).sum() / centred.square().sum().clamp(min=1e-12)
    slope = slope.clamp(min=min_slope)
    return slope, link_scores.mean() - slope * scores.mean()
