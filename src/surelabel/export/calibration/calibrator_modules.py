"""Export the calibration of a recognizer as a module."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from surelabel.arrays import LOGIT_LIMIT
from surelabel.calibration import (
    AdaptiveTemperature,
    Beta,
    Calibrator,
    Cooccurrence,
    CrossValidated,
    Dac,
    EnsembleTemperature,
    Hierarchical,
    Histogram,
    Isotonic,
    IsotonicPerClass,
    Platt,
    Temperature,
    Vector,
)
from surelabel.errors import ConfigError
from surelabel.export.calibration.adaptive_temperature_module import adaptive_temperature_module
from surelabel.export.calibration.affine_module import (
    dac_module,
    platt_module,
    temperature_module,
    vector_module,
)
from surelabel.export.calibration.beta_module import beta_module, hierarchical_module
from surelabel.export.calibration.cooccurrence_module import cooccurrence_module
from surelabel.export.calibration.isotonic_module import IsotonicPerClassModule, isotonic_module
from surelabel.export.calibration.label_tree_module import LabelTreeModule
from surelabel.export.calibration.mixture_module import EnsembleTemperatureModule, HistogramModule
from surelabel.recognizer.calibration_record import CalibrationRecord


def cross_validated_module(calibrator: CrossValidated) -> nn.Module:
    """Return the module of the selected calibrator."""
    return calibrator_module(calibrator.calibrator_)


CALIBRATOR_MODULES: dict[type[Calibrator], Callable[..., nn.Module]] = {
    AdaptiveTemperature: adaptive_temperature_module,
    Beta: beta_module,
    Cooccurrence: cooccurrence_module,
    CrossValidated: cross_validated_module,
    Dac: dac_module,
    EnsembleTemperature: EnsembleTemperatureModule,
    Hierarchical: hierarchical_module,
    Histogram: HistogramModule,
    Isotonic: isotonic_module,
    IsotonicPerClass: IsotonicPerClassModule,
    Platt: platt_module,
    Temperature: temperature_module,
    Vector: vector_module,
}


class CalibrationModule(nn.Module):
    """Compute the logits of a calibration in float32: calibrator, recalibration and label shift.

    After each of the three steps, the logits are clipped to [-40, 40] and projected to the tree of
    the labels, if there is one, as in ``CalibrationRecord.logits``.

    Args:
        record: Fitted calibration.
    """

    def __init__(self, record: CalibrationRecord):
        super().__init__()
        self.calibrator = calibrator_module(record.calibrator)
        steps: list[nn.Module] = []
        if (recalibration := record.recalibration) is not None:
            shifts = recalibration.shift + np.array(recalibration.label_shifts or [0.0])
            steps.append(_ClippedLine(recalibration.scale, shifts))
        if record.shift:
            steps.append(_ClippedLine(1.0, record.shift))
        if record.tree is not None:
            tree = LabelTreeModule(record.tree.parent_columns)
            steps = [tree, *(module for step in steps for module in (step, tree))]
        self.steps = nn.Sequential(*steps)

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return calibrated log-odds in [-40, 40], ``(n, c)``, in float32.

        Args:
            raw: Finite log-odds, or raw scores if there is no link, ``(n, c)``, in float32.
            vectors: Vectors of the images, ``(n, d)``, in float32. If None, there are no vectors.

        Raises:
            ConfigError: If the calibrator requires vectors and ``vectors`` is None.
        """
        log_odds: Tensor = self.calibrator(raw, vectors)
        logits: Tensor = self.steps(log_odds.clamp(-LOGIT_LIMIT, LOGIT_LIMIT))
        return logits


class _ClippedLine(nn.Module):
    """Compute scale · logit + shift, clipped to [-40, 40].

    Args:
        scale: Factor of the logits of all labels.
        shift: One constant for all labels, or one constant per label, ``(c,)``.
    """

    shift: Tensor

    def __init__(self, scale: float, shift: npt.ArrayLike):
        super().__init__()
        self.scale = scale
        self.register_buffer("shift", torch.from_numpy(np.array(shift, dtype=np.float32)))

    def forward(self, logits: Tensor) -> Tensor:
        """Return log-odds in [-40, 40], ``(n, c)``."""
        return (self.scale * logits + self.shift).clamp(-LOGIT_LIMIT, LOGIT_LIMIT)


def calibration_module(record: CalibrationRecord) -> CalibrationModule:
    """Return a module that computes ``record.logits`` in float32, and that can be exported.

    The logits differ from those of the record by rounding errors in float32. For raw scores and
    log-odds in [-40, 40], the difference is below 1e-4. The factor of a recalibration multiplies
    the difference. At the steps of isotonic regression, of histogram binning and of the anchors of
    co-occurrence, a float32 input is on the same side of the step as in float64. Non-finite inputs
    are not refused, because a graph cannot raise errors.

    Args:
        record: Fitted calibration.

    Raises:
        ConfigError: If the calibrator cannot be exported.
    """
    return CalibrationModule(record).eval().requires_grad_(False)


def calibrator_module(calibrator: Calibrator) -> nn.Module:
    """Return a module that computes the log-odds of a fitted calibrator, without clipping.

    Args:
        calibrator: Fitted calibrator.

    Raises:
        ConfigError: If the calibrator cannot be exported.
    """
    make_module = CALIBRATOR_MODULES.get(type(calibrator))
    if make_module is None:
        supported = ", ".join(entry.__name__ for entry in CALIBRATOR_MODULES)
        raise ConfigError(
            f"A calibrator must be one of {supported} for an export; got "
            f"{type(calibrator).__name__}, which has no graph. Calibrate with another calibrator."
        )
    return make_module(calibrator)
