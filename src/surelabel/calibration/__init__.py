"""Calibrators: ``fit(logits, targets, known=None) -> self``, then ``logits(logits) -> logits``.

Add one line here for a new one.
"""

from collections.abc import Callable

from surelabel.calibration.platt import Platt
from surelabel.calibration.protocol import Calibrator
from surelabel.calibration.temperature import Temperature

CALIBRATORS: dict[str, Callable[..., Calibrator]] = {"platt": Platt, "temperature": Temperature}

__all__ = ["CALIBRATORS", "Calibrator", "Platt", "Temperature"]
