"""This module defines vector scaling: Platt scaling per label, shrunk towards shared parameters."""

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.blas_threads import single_blas_thread
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_calibrated_label_count,
    check_positive_calibrator_setting,
    validate_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.fitting.label_slopes import fit_label_slopes, rows_of_labels
from surelabel.calibration.interface import OrderPreservation
from surelabel.calibration.platt import Platt
from surelabel.errors import DataError

SHARED_LINE = np.array([1.0, 0.0])  # slope and shift of a label with the shared parameters


class Vector(BaseCalibrator):
    """Vector scaling: a slope and a shift for each label, shrunk towards shared Platt scaling.

        z = a · x + b                      Platt scaling, shared by all labels
        logit_c = u_c · z + v_c,   u_c > 0
        u_c, v_c = argmin   log loss of label c  +  shrinkage / 2 · ((u_c - 1)^2 + v_c^2)

    Here x is the input logit or raw score, and logit_c is the calibrated logit. The shared slope
    and shift are a and b. The slope and the shift of label c relative to z are u_c and v_c. The log
    loss is summed over the known targets of the label. Therefore the parameters of a frequent label
    depend mostly on its own data, and the parameters of a rare label stay close to the shared
    parameters. A label without known positives or without known negatives keeps the shared
    parameters. In simulations, the log loss quadrupled if labels without positives or without
    negatives were fitted as well.

    Args:
        shrinkage: Strength of the penalty that shrinks u_c towards 1 and v_c towards 0, above 0.
            Use 1 if the shifts that the labels need differ by about 1 in log-odds, and 4 if the
            shifts differ by about 0.5.

    Attributes:
        shared_: Fitted shared ``Platt``.
        slopes_: Slope a · u_c of each label, ``(c,)``.
        shifts_: Shift b · u_c + v_c of each label, ``(c,)``.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Vector scaling in Guo et al., On Calibration of Modern Neural Networks, ICML 2017,
        arXiv:1706.04599, with a sigmoid for each label.

    Differs:
        The shrinkage towards the shared parameters is ours. A rare label has few positives, so
        unshrunk parameters would be fitted to noise.

    Example:
        >>> x = [[-1.0, 3.0]] * 9 + [[1.0, 5.0]]
        >>> y = [[0, 0]] * 4 + [[1, 0]] + [[0, 1]] * 4 + [[1, 1]]
        >>> Vector().fit(x, y).slopes_.round(4)
        array([0.4576, 0.4666])
    """

    keeps_order: ClassVar[OrderPreservation] = "strictly"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = False

    def __init__(self, *, shrinkage: float = 1.0) -> None:
        self.shrinkage = shrinkage
        self._check_settings()

    @single_blas_thread()
    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the shared parameters and the parameters of each label on held-out data.

        Args:
            logits: Finite log-odds or raw scores of n images and c labels, ``(n, c)``.
            targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
            known: True where the target is known, ``(n, c)``. If None, all targets except
                NaN are known.

        Returns:
            The fitted calibrator.

        Raises:
            InputError: If the shapes differ, if a logit is not finite, if a known target is outside
                [0, 1], or if the known targets contain no positive or no negative target.
        """
        x, y, known = validate_calibration_data(logits, targets, known)
        self.shared_ = Platt().fit(x, y, known)
        lines = np.tile(SHARED_LINE, (x.shape[1], 1))
        positives = np.ascontiguousarray(y.T).sum(axis=1)
        fittable = (positives > 0) & (positives < known.sum(axis=0))
        z = rows_of_labels(self.shared_.logits(x), fittable)
        lines[fittable] = fit_label_slopes(
            z,
            rows_of_labels(y, fittable),
            rows_of_labels(known, fittable),
            start=lines[fittable],
            mean=SHARED_LINE,
            precision=self.shrinkage * np.eye(2),
        )
        slope, shift = lines.T
        self.slopes_ = self.shared_.slope_ * slope
        self.shifts_ = self.shared_.shift_ * slope + shift
        return self

    def with_labels(self, columns: Sequence[int | None]) -> Self:
        """Return a copy of the calibrator for other labels, with shared parameters for new labels.

        Args:
            columns: Index of each label among the labels of the fit, or None for a new label.

        Raises:
            NotFitted: If the calibrator is not fitted.
        """
        self._check_fitted()
        other, shared = copy(self), (self.shared_.slope_, self.shared_.shift_)
        lines = [(self.slopes_[k], self.shifts_[k]) if k is not None else shared for k in columns]
        other.slopes_, other.shifts_ = np.array(lines).reshape(-1, 2).T.copy()
        return other

    def shared_calibrator(self) -> Platt:
        """Return the shared Platt scaling, which is valid for new labels."""
        self._check_fitted()
        return self.shared_

    def state(self) -> dict[str, Any]:
        """Return the shared and the label-specific parameters as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "slopes": self.slopes_.tolist(),
            "shifts": self.shifts_.tolist(),
            **self.shared_.state(),
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the parameters from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(state, slopes="c", shifts="c", slope="", shift="")
        if arrays["slopes"].min() <= 0:
            raise DataError(
                f"Saved slopes must be above 0; got {arrays['slopes'].min()}. Calibrate again."
            )
        self.shared_ = Platt().restore({name: state[name] for name in ("slope", "shift")})
        self.slopes_, self.shifts_ = arrays["slopes"], arrays["shifts"]
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        check_calibrated_label_count(x, len(self.slopes_))
        log_odds: Array = self.slopes_ * x + self.shifts_
        return log_odds

    def _check_settings(self) -> None:
        check_positive_calibrator_setting("shrinkage", self.shrinkage)
