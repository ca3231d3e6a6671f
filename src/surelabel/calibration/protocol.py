"""What a calibrator can do."""

from typing import Any, ClassVar, Literal, Protocol, Self

import numpy.typing as npt

from surelabel.records import Array

Order = Literal["strictly", "with ties", "no"]


class Calibrator(Protocol):
    """Fitted on held-out decisions, it turns logits or raw scores into logits to be trusted.

    Fitted attributes end in an underscore. It also speaks scikit-learn.

    Attributes:
        keeps_order: What becomes of the order of the logits of one label, short of the limits
            of -40 and 40: it stays ("strictly"), it stays but for new ties ("with ties"), or
            it may turn round ("no").
        sets_level: Whether it finds the level of scores that are no log-odds, too.
        shared: Whether all labels share the parameters, so that they hold for new names.
    """

    keeps_order: ClassVar[Order]
    sets_level: ClassVar[bool]
    shared: ClassVar[bool]

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit on held-out logits and targets, ``(n, c)``; NaN in targets is unknown."""

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Calibrated log-odds in [-40, 40], ``(n, c)``."""

    def predict_proba(self, logits: npt.ArrayLike) -> Array:
        """Sigmoid of the calibrated log-odds, ``(n, c)``."""

    def shared_part(self) -> "Calibrator | None":
        """What of it holds for new names: itself where ``shared``, None where nothing does."""

    def state(self) -> dict[str, Any]:
        """The fitted parameters, ready for JSON: numbers and (nested) lists of them."""

    def restore(self, state: dict[str, Any]) -> Self:
        """Take fitted parameters back from ``state``; a damaged one is a DataError."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn asks for them."""

    def set_params(self, **params: Any) -> Self:
        """Change settings, as scikit-learn does."""
