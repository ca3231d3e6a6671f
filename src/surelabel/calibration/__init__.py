"""This package defines calibrators, which map logits or raw scores to calibrated logits.

Every calibrator has the methods ``fit(logits, targets, known=None) -> self`` and
``logits(logits) -> logits``. To add a calibrator, add one line to ``CALIBRATORS``.
"""

from collections.abc import Callable

from surelabel.calibration.adaptive_temperature.adaptive_temperature import AdaptiveTemperature
from surelabel.calibration.beta import Beta
from surelabel.calibration.cooccurrence import Cooccurrence
from surelabel.calibration.cross_validated import CrossValidated, are_selection_log_losses
from surelabel.calibration.dac import Dac
from surelabel.calibration.ensemble_temperature import EnsembleTemperature
from surelabel.calibration.fitting.cross_fitting import assign_folds, cross_fitted_logits
from surelabel.calibration.fitting.other_targets import logits_given_other_targets
from surelabel.calibration.hierarchical import Hierarchical
from surelabel.calibration.histogram import Histogram
from surelabel.calibration.interface import (
    Calibrator,
    CalibratorSelection,
    HasLabelParameters,
    LabelTexts,
    SelectsCalibrator,
    UsesImageVectors,
    UsesLabelTexts,
    calibrator_for_images,
)
from surelabel.calibration.isotonic import Isotonic
from surelabel.calibration.isotonic_per_class import IsotonicPerClass
from surelabel.calibration.label_tree.isotonic_logits import isotonic_logits
from surelabel.calibration.platt import Platt
from surelabel.calibration.shift.label_shift import LabelShift, estimate_label_shift
from surelabel.calibration.shift.scale_and_shift import fit_scale_and_shift
from surelabel.calibration.temperature import Temperature
from surelabel.calibration.vector import Vector

CALIBRATORS: dict[str, Callable[..., Calibrator]] = {
    "adaptive_temperature": AdaptiveTemperature,
    "beta": Beta,
    "cooccurrence": Cooccurrence,
    "cross_validated": CrossValidated,
    "dac": Dac,
    "ensemble_temperature": EnsembleTemperature,
    "hierarchical": Hierarchical,
    "histogram": Histogram,
    "isotonic": Isotonic,
    "isotonic_per_class": IsotonicPerClass,
    "platt": Platt,
    "temperature": Temperature,
    "vector": Vector,
}

__all__ = [
    "CALIBRATORS",
    "AdaptiveTemperature",
    "Beta",
    "Calibrator",
    "CalibratorSelection",
    "Cooccurrence",
    "CrossValidated",
    "Dac",
    "EnsembleTemperature",
    "HasLabelParameters",
    "Hierarchical",
    "Histogram",
    "Isotonic",
    "IsotonicPerClass",
    "LabelShift",
    "LabelTexts",
    "Platt",
    "SelectsCalibrator",
    "Temperature",
    "UsesImageVectors",
    "UsesLabelTexts",
    "Vector",
    "are_selection_log_losses",
    "assign_folds",
    "calibrator_for_images",
    "cross_fitted_logits",
    "estimate_label_shift",
    "fit_scale_and_shift",
    "isotonic_logits",
    "logits_given_other_targets",
]
