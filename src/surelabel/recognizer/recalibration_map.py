"""Define the map of a recalibration: a scale and a shift of calibrated log-odds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.errors import DataError

MIN_SCALE, MAX_SCALE, MAX_TOTAL_SHIFT = 1e-4, 1e4, 1000.0


@dataclass(frozen=True)
class RecalibrationMap:
    """Map z' = scale · z + shift + label_shifts of calibrated log-odds z.

    Attributes:
        scale: Factor of the log-odds, above 0.
        shift: Constant that is added to the log-odds of all labels.
        label_shifts: One constant per label, length c: the label shifts before the recalibration,
            already multiplied by the scales that follow them. If the tuple is empty, there was no
            label shift.
    """

    scale: float = 1.0
    shift: float = 0.0
    label_shifts: tuple[float, ...] = ()

    def logits(self, logits: Array) -> Array:
        """Return the log-odds ``(n, c)`` after the recalibration, without clipping."""
        mapped: Array = self.scale * logits + self.shift
        return mapped + self.label_shifts if self.label_shifts else mapped

    def followed_by(
        self, scale: float, shift: float, label_shift: Sequence[float] = ()
    ) -> "RecalibrationMap":
        """Return the map that applies this map, then a label shift, then a scale and a shift.

        Args:
            scale: Factor of the log-odds, above 0.
            shift: Constant that is added to the scaled log-odds of all labels.
            label_shift: One constant per label, length c, or empty without a label shift.
        """
        shifts = np.zeros(max(len(self.label_shifts), len(label_shift)))
        for values in (self.label_shifts, label_shift):
            if values:
                shifts += values
        return RecalibrationMap(
            scale * self.scale, scale * self.shift + shift, tuple((scale * shifts).tolist())
        )

    def state(self) -> dict[str, Any]:
        """Return the map as a JSON object."""
        state: dict[str, Any] = {"scale": self.scale, "shift": self.shift}
        return state | ({"label_shifts": list(self.label_shifts)} if self.label_shifts else {})

    @classmethod
    def restore(cls, state: Any) -> "RecalibrationMap":
        """Return the map of a JSON object.

        Raises:
            DataError: If a value is missing, has another type, or is out of range.
        """
        fields = state if isinstance(state, dict) else {}
        label_shifts = fields.get("label_shifts", [])
        is_valid = (
            {"scale", "shift"} <= fields.keys() <= {"scale", "shift", "label_shifts"}
            and isinstance(label_shifts, list)
            and all(_is_bounded(v, MAX_TOTAL_SHIFT) for v in (fields["shift"], *label_shifts))
            and _is_bounded(fields["scale"], MAX_SCALE)
            and fields["scale"] >= MIN_SCALE
        )
        if not is_valid:
            raise DataError(
                f"recalibration in calibration.json must contain scale in [{MIN_SCALE:g}, "
                f"{MAX_SCALE:g}], and shift and label_shifts in [-{MAX_TOTAL_SHIFT:g}, "
                f"{MAX_TOTAL_SHIFT:g}]; got {str(state)[:200]}. Calibrate again."
            )
        return cls(float(fields["scale"]), float(fields["shift"]), tuple(map(float, label_shifts)))


def _is_bounded(value: Any, limit: float) -> bool:
    return type(value) in (int, float) and abs(value) <= limit  # False for NaN
