"""This module defines the base class of calibrators, with validation and scikit-learn methods."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.calibration.fitting.input_validation import validate_calibrator_input
from surelabel.calibration.interface import Calibrator, UsesImageVectors
from surelabel.errors import ConfigError, NotFitted
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks
from surelabel.summaries import Summary
from surelabel.tables import table_entry_settings


class BaseCalibrator(Calibrator):
    """Base class that validates the input, clips the output and implements scikit-learn methods.

    A subclass implements ``fit``, ``state``, ``restore`` and ``_calibrated_log_odds``. The
    keyword-only arguments of a calibrator are its settings. The names of fitted attributes end in
    an underscore.
    """

    def __init__(self) -> None:
        """Create a calibrator without settings. Calibrators with settings override this method."""

    def __repr__(self) -> str:
        """Return the class name, the non-default settings and the fitted attributes as text."""
        defaults = table_entry_settings(type(self))
        values = {
            name: value
            for name, value in self._public_attributes().items()
            if name not in defaults or repr(value) != repr(defaults[name])
        }
        return Summary(type(self).__name__, values).as_text()

    def _repr_html_(self) -> str:
        """Return all settings and the fitted attributes as an HTML table."""
        return Summary(type(self).__name__, self._public_attributes()).as_markup()

    def _public_attributes(self) -> dict[str, Any]:
        """Return the settings and the fitted attributes by name."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Return the calibrated log-odds of ``logits``, ``(n, c)``, clipped to [-40, 40].

        Raises:
            NotFitted: If the calibrator is not fitted.
            InputError: If ``logits`` does not have two axes, a value is not finite, or the number
                of labels does not match the fit of a calibrator with parameters per label.
            ConfigError: If the calibrator requires image vectors and has none.
        """
        self._check_fitted()
        x = validate_calibrator_input(logits)
        if isinstance(self, UsesImageVectors):  # the vectors belong to all rows, not to a block
            return np.clip(self._calibrated_log_odds(x), -LOGIT_LIMIT, LOGIT_LIMIT)
        log_odds = np.empty(x.shape)
        for rows in row_blocks(x, n_bytes=CACHED_BYTES):
            np.clip(
                self._calibrated_log_odds(x[rows]), -LOGIT_LIMIT, LOGIT_LIMIT, out=log_odds[rows]
            )
        return log_odds

    def predict_proba(self, logits: npt.ArrayLike) -> Array:
        """Return the sigmoid of the calibrated log-odds, ``(n, c)``.

        The errors are those of ``logits``.
        """
        log_odds = self.logits(logits)
        probabilities: Array = expit(log_odds, out=log_odds)
        return probabilities

    def shared_calibrator(self) -> Calibrator | None:
        """Return this calibrator if all labels share its parameters, otherwise None."""
        return self if self.shares_parameters else None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings of the calibrator by name; ``deep`` has no effect."""
        return {name: getattr(self, name) for name in table_entry_settings(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Change settings of the calibrator, and return the calibrator.

        If one setting is invalid, no setting is changed. Fitted attributes do not change until the
        next ``fit``.

        Raises:
            ConfigError: If a setting does not exist or its value is out of range.
        """
        known = table_entry_settings(type(self))
        if extra := params.keys() - known.keys():
            available = (
                f"Settings: {', '.join(known)}." if known else "This calibrator has no settings."
            )
            raise ConfigError(
                f"{type(self).__name__} has no setting {', '.join(sorted(extra))}. {available}"
            )
        settings = type(self)(**(self.get_params() | params)).get_params()
        for name, value in settings.items():
            setattr(self, name, value)
        return self

    @abstractmethod
    def _calibrated_log_odds(self, x: Array) -> Array:
        """Return the calibrated log-odds of validated logits ``(n, c)``, without clipping."""

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") for name in vars(self)):
            raise NotFitted(
                f"{type(self).__name__} is not fitted. Call fit(logits, targets) or "
                "restore(state) first."
            )
