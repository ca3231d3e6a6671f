"""Calibrators: ``fit(logits, targets, known=None) -> self``, then ``logits(logits) -> logits``.

Add one line here for a new one.
"""

from collections.abc import Callable

from surelabel.calibration.beta import Beta
from surelabel.calibration.crossing import cross_fitted, dealt
from surelabel.calibration.ensemble_temperature import EnsembleTemperature
from surelabel.calibration.histogram import Histogram
from surelabel.calibration.isotonic import Isotonic
from surelabel.calibration.isotonic_per_class import IsotonicPerClass
from surelabel.calibration.label_shift import Shift, label_shift
from surelabel.calibration.platt import Platt
from surelabel.calibration.protocol import Calibrator
from surelabel.calibration.temperature import Temperature
from surelabel.calibration.vector import Vector

CALIBRATORS: dict[str, Callable[..., Calibrator]] = {
    "beta": Beta,
    "ensemble_temperature": EnsembleTemperature,
    "histogram": Histogram,
    "isotonic": Isotonic,
    "isotonic_per_class": IsotonicPerClass,
    "platt": Platt,
    "temperature": Temperature,
    "vector": Vector,
}

__all__ = [
    "CALIBRATORS",
    "Beta",
    "Calibrator",
    "EnsembleTemperature",
    "Histogram",
    "Isotonic",
    "IsotonicPerClass",
    "Platt",
    "Shift",
    "Temperature",
    "Vector",
    "cross_fitted",
    "dealt",
    "label_shift",
]
