"""Interface that every calibrator implements."""

from typing import Any, ClassVar, Literal, Protocol, Self

import numpy.typing as npt

from surelabel.records import Array

OrderPreservation = Literal["strictly", "with ties", "no"]


class Calibrator(Protocol):
    """Interface of a calibrator: a fitted map from logits or raw scores to calibrated logits.

    A calibrator is fitted on held-out decisions. A decision is one label of one image. Fitted
    attributes end in an underscore, and the methods follow scikit-learn's estimator interface.

    Attributes:
        keeps_order: Effect of the calibrator on the order of the logits of one label, for logits in
            [-40, 40]. The order is preserved ("strictly"), is preserved except for new ties ("with
            ties"), or may change ("no").
        accepts_raw_scores: Whether raw scores are accepted as well as log-odds. The value is True
            if the calibrator fits the offset of the scores.
        shares_parameters: Whether all labels share the fitted parameters. Shared parameters are
            also valid for new labels.
    """

    keeps_order: ClassVar[OrderPreservation]
    accepts_raw_scores: ClassVar[bool]
    shares_parameters: ClassVar[bool]

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the calibrator on held-out logits and targets, ``(n, c)``; NaN means unknown."""

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Return calibrated log-odds in [-40, 40], ``(n, c)``."""

    def predict_proba(self, logits: npt.ArrayLike) -> Array:
        """Return the sigmoid of the calibrated log-odds, ``(n, c)``."""

    def shared_calibrator(self) -> "Calibrator | None":
        """Return a calibrator for new labels, with the parameters that all labels share.

        Returns:
            The calibrator itself if ``shares_parameters`` is True, or None if no parameter is
            shared.
        """

    def state(self) -> dict[str, Any]:
        """Return the fitted parameters for JSON: numbers and (nested) lists of numbers."""

    def restore(self, state: dict[str, Any]) -> Self:
        """Load fitted parameters from the output of ``state``.

        Raises:
            DataError: If the state is damaged.
        """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, as in scikit-learn."""

    def set_params(self, **params: Any) -> Self:
        """Change settings, as in scikit-learn."""
