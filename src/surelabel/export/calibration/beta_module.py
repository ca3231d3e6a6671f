"""Export beta calibration and hierarchical calibration."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from surelabel.calibration import Beta, Hierarchical
from surelabel.export.calibration.log_probabilities import softplus_of_minus_magnitude


class BetaModule(nn.Module):
    """Compute the log-odds of beta calibration as two lines and a smooth transition at 0.

        a · log(p) - b · log(1 - p) + c
            = a · min(x, 0) + b · max(x, 0) + (b - a) · log(1 + exp(-|x|)) + c

    Args:
        lower: Slope a of negative inputs, a number or ``(c,)``.
        upper: Slope b of positive inputs, a number or ``(c,)``.
        shift: Shift c, a number or ``(c,)``.
    """

    lower: Tensor
    upper: Tensor
    transition: Tensor
    shift: Tensor

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike, shift: npt.ArrayLike):
        super().__init__()
        transition = np.asarray(upper) - np.asarray(lower)
        constants = {"lower": lower, "upper": upper, "transition": transition, "shift": shift}
        for name, values in constants.items():
            self.register_buffer(name, torch.from_numpy(np.atleast_1d(values).astype(np.float32)))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        lines = self.lower * raw.clamp(max=0) + self.upper * raw.clamp(min=0)
        return lines + self.transition * softplus_of_minus_magnitude(raw) + self.shift


def beta_module(calibrator: Beta) -> BetaModule:
    """Return the module of beta calibration."""
    lower, upper = calibrator.slopes_
    return BetaModule(lower, upper, calibrator.shift_)


def hierarchical_module(calibrator: Hierarchical) -> BetaModule:
    """Return the module of hierarchical calibration, which is beta calibration for each label."""
    slopes, shared = calibrator.label_slopes_, calibrator.shared_
    lower, upper = (slopes * slope for slope in shared.slopes_)
    return BetaModule(lower, upper, slopes * shared.shift_ + calibrator.label_shifts_)
