"""Interface that every calibrator implements."""

from typing import Any, ClassVar, Literal, Protocol, Self

import numpy.typing as npt

from surelabel.arrays import Array

OrderPreservation = Literal["strictly", "with ties", "no"]


class Calibrator(Protocol):
    """Interface of a calibrator: a fitted map from logits or raw scores to calibrated logits.

    A calibrator is fitted on held-out decisions. A decision is one label of one image. The names of
    fitted attributes end in an underscore. ``fit``, ``predict_proba``, ``get_params`` and
    ``set_params`` follow the estimator interface of scikit-learn.

    Attributes:
        keeps_order: Whether calibration preserves the order of images for each label, for logits in
            [-40, 40]: "strictly", "with ties" if different logits may become equal, or "no" if the
            order may change.
        accepts_raw_scores: Whether the input may be raw scores instead of log-odds. The value is
            True if the calibrator fits the offset of the scores.
        shares_parameters: Whether all labels share the fitted parameters. If True, the calibrator
            is also valid for labels that were added after the fit.
    """

    keeps_order: ClassVar[OrderPreservation]
    accepts_raw_scores: ClassVar[bool]
    shares_parameters: ClassVar[bool]

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the calibrator on held-out logits and targets, ``(n, c)``.

        If a target is NaN, or if ``known`` is False, the target is unknown and is ignored.
        """

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Return calibrated log-odds in [-40, 40], ``(n, c)``."""

    def predict_proba(self, logits: npt.ArrayLike) -> Array:
        """Return the sigmoid of the calibrated log-odds, ``(n, c)``."""

    def shared_calibrator(self) -> "Calibrator | None":
        """Return a calibrator for new labels, with the parameters that all labels share.

        Returns:
            The calibrator itself if ``shares_parameters`` is True. Otherwise, a calibrator with the
            shared parameters only, or None if no parameter is shared.
        """

    def state(self) -> dict[str, Any]:
        """Return the fitted parameters by name, as numbers and nested lists that JSON can store."""

    def restore(self, state: dict[str, Any]) -> Self:
        """Load fitted parameters from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name, as in scikit-learn."""

    def set_params(self, **params: Any) -> Self:
        """Change settings by name and return the calibrator, as in scikit-learn."""
