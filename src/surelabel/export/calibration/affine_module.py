"""Export the calibrators that multiply a logit by a slope and add a shift."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from surelabel.calibration import Dac, Platt, Temperature, Vector

MAX_LOG_ODDS = 1e4  # far outside the limits of logits, also after a division by a temperature
MAX_CENTRE = 1e30


class AffineModule(nn.Module):
    """Compute slope · x + shift in float32, precisely where the result is close to 0.

    The sum is computed as slope · (x - centre) + remainder, where the centre is about -shift /
    slope. Therefore two large numbers do not cancel for scores such as cosines, which have steep
    slopes. Differences are limited before the multiplication, so that a runtime cannot merge the
    two constants.

    Args:
        slope: Slope above 0, a number or ``(c,)``.
        shift: Shift, a number or ``(c,)``.
    """

    slope: Tensor
    centre: Tensor
    remainder: Tensor
    limit: Tensor

    def __init__(self, slope: npt.ArrayLike, shift: npt.ArrayLike):
        super().__init__()
        slopes, shifts = np.atleast_1d(slope), np.atleast_1d(shift)
        centre = np.clip(-shifts / slopes, -MAX_CENTRE, MAX_CENTRE).astype(np.float32)
        constants = {
            "slope": slopes,
            "centre": centre,
            "remainder": slopes * centre.astype(np.float64) + shifts,
            "limit": np.minimum(MAX_LOG_ODDS / slopes, MAX_CENTRE),
        }
        for name, values in constants.items():
            self.register_buffer(name, torch.from_numpy(values.astype(np.float32)))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        difference = (raw - self.centre).clamp(-self.limit, self.limit)
        return self.slope * difference + self.remainder


def temperature_module(calibrator: Temperature) -> AffineModule:
    """Return the module of temperature scaling."""
    return AffineModule(1 / calibrator.temperature_, 0.0)


def platt_module(calibrator: Platt) -> AffineModule:
    """Return the module of Platt scaling."""
    return AffineModule(calibrator.slope_, calibrator.shift_)


def vector_module(calibrator: Vector) -> AffineModule:
    """Return the module of vector scaling."""
    return AffineModule(calibrator.slopes_, calibrator.shifts_)


def dac_module(calibrator: Dac) -> AffineModule:
    """Return the module of distance-aware calibration."""
    shared = calibrator.shared_
    return AffineModule(calibrator.factors * shared.slope_, calibrator.factors * shared.shift_)
