"""Export isotonic regression, with one curve for all labels or one curve for each label."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.calibration import Isotonic, IsotonicPerClass
from surelabel.calibration.fitting.isotonic_curve import IsotonicCurve
from surelabel.export.calibration.float32_steps import Float32Array, StepIndex
from surelabel.export.calibration.log_probabilities import log_add_exp, log_sigmoid, log_weights

MAX_INVERSE = 1e30  # of the distance between two knots


class IsotonicCurveModule(nn.Module):
    """Compute the log-odds of isotonic curves.

    Between two knots, the log-odds are the level at the lower knot plus a fraction of the rise to
    the upper knot. A knot is stored as the sum of two float32 numbers, because the distance of two
    knots may be close to the spacing of float32 numbers. Therefore every float32 score is in the
    same interval as in float64.

    Args:
        curves: One curve for all labels, or one curve for each of c labels.
    """

    intervals: Tensor
    rows: Tensor

    def __init__(self, curves: Sequence[IsotonicCurve]):
        super().__init__()
        width = max(len(curve.knots) for curve in curves)
        edges = np.full((len(curves), width), np.inf, np.float32)
        intervals = np.zeros((len(curves), width + 1, 5), np.float32)
        for row, curve in enumerate(curves):
            edges[row, : len(curve.knots)] = _round_up_to_float32(curve.knots)
            intervals[row, : len(curve.knots) + 1] = _intervals_of_curve(curve)
        self.index = StepIndex(edges)
        self.register_buffer("intervals", torch.from_numpy(intervals.reshape(-1, 5)))
        self.register_buffer("rows", torch.arange(len(curves)) * (width + 1))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        interval = self.intervals[self.index(raw) + self.rows]
        knot, remainder, inverse_width, level, rise = interval.unbind(dim=-1)
        fraction = ((raw - knot - remainder) * inverse_width).clamp(0, 1)
        return level + rise * fraction


class IsotonicPerClassModule(nn.Module):
    """Compute the log-odds of the mixture of the curve of each label and the pooled curve.

    Args:
        calibrator: Fitted isotonic regression per label.
    """

    log_weights: Tensor

    def __init__(self, calibrator: IsotonicPerClass):
        super().__init__()
        self.per_label = IsotonicCurveModule(calibrator.curves_)
        self.pooled = IsotonicCurveModule([calibrator.shared_.curve_])
        weights = log_weights(np.stack([calibrator.weights_, 1 - calibrator.weights_]))
        self.register_buffer("log_weights", torch.from_numpy(weights.astype(np.float32)))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        per_label = self.per_label(raw)
        pooled = self.pooled(raw).clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        return self._log_mixture(per_label, pooled) - self._log_mixture(-per_label, -pooled)

    def _log_mixture(self, per_label: Tensor, pooled: Tensor) -> Tensor:
        """Return the logarithm of the weighted mean of the sigmoids of two log-odds, ``(n, c)``."""
        return log_add_exp(
            self.log_weights[0] + log_sigmoid(per_label), self.log_weights[1] + log_sigmoid(pooled)
        )


def isotonic_module(calibrator: Isotonic) -> IsotonicCurveModule:
    """Return the module of isotonic regression."""
    return IsotonicCurveModule([calibrator.curve_])


def _intervals_of_curve(curve: IsotonicCurve) -> Float32Array:
    """Return the intervals below, between and above the k knots of a curve, ``(k + 1, 5)``.

    The columns are the lower knot, its rounding error in float32, the inverse width, the level at
    the lower knot and the rise to the upper knot. The first and the last interval have no rise.
    """
    knots, levels = curve.knots[[0, *range(len(curve.knots))]], curve.levels
    rounded = knots.astype(np.float32).astype(np.float64)
    inverse, rise = np.zeros_like(knots), np.zeros_like(knots)
    inverse[1:-1] = np.minimum(1 / np.diff(curve.knots), MAX_INVERSE)
    rise[1:-1] = np.diff(levels)
    columns = [rounded, knots - rounded, inverse, np.append(levels[0], levels), rise]
    return np.stack(columns, axis=1).astype(np.float32)


def _round_up_to_float32(values: Array) -> Float32Array:
    """Return the smallest float32 numbers that are at least ``values``."""
    rounded = values.astype(np.float32)
    return np.where(rounded < values, np.nextafter(rounded, np.float32(np.inf)), rounded)
