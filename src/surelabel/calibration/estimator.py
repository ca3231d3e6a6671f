"""What all calibrators of this room do in the same way."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.calibration.checked import checked_logits
from surelabel.calibration.protocol import Calibrator
from surelabel.errors import ConfigError, NotFitted
from surelabel.records import LOGIT_LIMIT, Array
from surelabel.tables import settings


class Estimator(Calibrator):
    """Checks before and limits after the map, and the speech of scikit-learn.

    A calibrator adds ``fit``, ``state``, ``restore`` and ``_log_odds``. Its keyword-only
    arguments are its settings; what is fitted ends in an underscore.
    """

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Calibrated log-odds of ``logits`` ``(n, c)``, in [-40, 40]."""
        self._check_fitted()
        return np.clip(self._log_odds(checked_logits(logits)), -LOGIT_LIMIT, LOGIT_LIMIT)

    def predict_proba(self, logits: npt.ArrayLike) -> Array:
        """Calibrated probabilities of ``logits``, ``(n, c)``."""
        probabilities: Array = expit(self.logits(logits))
        return probabilities

    def shared_part(self) -> Calibrator | None:
        """What holds for new names: itself where all labels share it, otherwise None."""
        return self if self.shared else None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings."""
        return {name: getattr(self, name) for name in settings(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Change settings.

        Raises:
            ConfigError: there is no such setting, or its value does not fit.
        """
        known = settings(type(self))
        if extra := params.keys() - known.keys():
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise ConfigError(
                f"{type(self).__name__} has no setting {', '.join(sorted(extra))}. {has}"
            )
        for name, value in params.items():
            setattr(self, name, value)
        self._check_settings()
        return self

    @abstractmethod
    def _log_odds(self, x: Array) -> Array:
        """Log-odds of checked logits ``(n, c)``, without limits."""

    def _check_settings(self) -> None:
        """Nothing to check where there is no setting."""

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") for name in vars(self)):
            raise NotFitted(
                f"{type(self).__name__} needs fit(logits, targets), or restore(state), first."
            )
