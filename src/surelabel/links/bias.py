"""Convert scaled cosines of an encoder that was trained with the sigmoid loss to log-odds."""

from dataclasses import dataclass
from typing import ClassVar

from surelabel.arrays import LOGIT_LIMIT
from surelabel.links.conversion.numpy_conversion import apply_with_numpy_conversion
from surelabel.links.interface import ArrayOrTensor


@dataclass(frozen=True)
class Bias:
    """Add the bias of a pretrained encoder to its scaled cosines.

        logit = min(max(score + bias, -40), 40)

    Attributes:
        bias: Learned bias of the encoder; the default is the initial bias of the paper.

    Source:
        Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, arXiv:2303.15343,
        algorithm 1. The score is the cosine of an image and a text, multiplied by the learned
        scale.

    Example:
        >>> import numpy as np
        >>> Bias(bias=-10.0).logits(np.array([0.0, 12.5]))
        array([-10. ,   2.5])
    """

    bias: float = -10.0
    is_strictly_increasing: ClassVar[bool] = True

    def log_odds(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return the scores plus the bias, in float32 or float64."""
        return apply_with_numpy_conversion(lambda x: x + self.bias, scores)

    def logits(self, scores: ArrayOrTensor) -> ArrayOrTensor:
        """Return the log-odds clipped to [-40, 40], in float32 or float64."""
        return apply_with_numpy_conversion(
            lambda x: (x + self.bias).clip(-LOGIT_LIMIT, LOGIT_LIMIT), scores
        )

    def scores(self, logits: ArrayOrTensor) -> ArrayOrTensor:
        """Return the logits, clipped to [-40, 40], minus the bias, in float32 or float64."""
        return apply_with_numpy_conversion(
            lambda x: x.clip(-LOGIT_LIMIT, LOGIT_LIMIT) - self.bias, logits
        )
