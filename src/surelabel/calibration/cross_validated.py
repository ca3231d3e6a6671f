"""Select a shared, a per-label or a hierarchical calibrator by cross-validation."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.blas_threads import single_blas_thread
from surelabel.calibration.beta import Beta
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.cross_fitting import cross_fitted_logits
from surelabel.calibration.fitting.input_validation import (
    check_calibrated_label_count,
    truncate_calibrator_state,
    validate_calibration_data,
)
from surelabel.calibration.hierarchical import Hierarchical
from surelabel.calibration.interface import Calibrator, CalibratorSelection, OrderPreservation
from surelabel.calibration.vector import Vector
from surelabel.errors import ConfigError, DataError
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks

CANDIDATES: dict[str, type[Calibrator]] = {
    "beta": Beta,  # shared by all labels; selected if there is no cross-validation
    "vector": Vector,
    "hierarchical": Hierarchical,
}
MIN_IMAGES = 20  # fewest images with a known target for a cross-validation
SEED = 0  # seed of the assignment of images to folds


class CrossValidated(BaseCalibrator):
    """Select ``beta``, ``vector`` or ``hierarchical`` by cross-validated log loss.

    The calibrator with the lowest log loss of out-of-fold logits is fitted on all images. ``beta``
    shares its parameters over all labels, ``vector`` has parameters per label, and ``hierarchical``
    shrinks parameters per label, with a strength that is estimated from the differences between
    labels. If fewer than 20 images have a known target, ``beta`` is fitted without a selection.
    Labels that are added after the fit use the shared parameters of the selected calibrator.

    ``Recognizer`` stores only the selected calibrator, and includes its key in the description of
    the calibration. For pseudo-labels, whose errors differ from those of annotations,
    ``Recognizer`` uses ``beta``.

    Args:
        folds: Number of folds, >= 2. There are at most as many folds as images with a known target.

    Attributes:
        selected_: Key of the selected calibrator.
        log_losses_: Cross-validated log loss in nats of each calibrator by key. If there was no
            cross-validation, the dictionary is empty.
        calibrator_: Selected calibrator, fitted on all images.
        n_labels_: Number of labels of the fit.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        None; ours. Cross-validation as a selection criterion: Stone, Cross-Validatory Choice and
        Assessment of Statistical Predictions, Journal of the Royal Statistical Society B, 1974.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = 2 * rng.normal(size=(200, 3))
        >>> p = 1 / (1 + np.exp(-x - [-3.0, 0.0, 2.0]))
        >>> calibrator = CrossValidated().fit(x, rng.random(x.shape) < p)
        >>> calibrator.selected_, {k: round(v, 3) for k, v in calibrator.log_losses_.items()}
        ('hierarchical', {'beta': 0.581, 'vector': 0.343, 'hierarchical': 0.343})
    """

    keeps_order: ClassVar[OrderPreservation] = "strictly"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = False

    def __init__(self, *, folds: int = 5) -> None:
        if not float(folds).is_integer() or folds < 2:
            raise ConfigError(f"folds must be a whole number of at least 2; got {folds}.")
        self.folds = folds

    @single_blas_thread()
    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Select a calibrator and fit it on all held-out data.

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
        selection = self.select(x, y, known)
        self.selected_, self.log_losses_ = selection.name, selection.log_losses
        self.calibrator_ = selection.make_calibrator().fit(x, y, known)
        self.n_labels_ = x.shape[1]
        return self

    @single_blas_thread()
    def select(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> CalibratorSelection:
        """Select the calibrator with the lowest cross-validated log loss, and return it unfitted.

        The arguments and the errors are those of ``fit``.
        """
        x, y, known = validate_calibration_data(logits, targets, known)
        n_images = int(known.any(axis=1).sum())
        if n_images < MIN_IMAGES:
            return self.select_shared()
        log_losses, folds = {}, min(int(self.folds), n_images)
        for name, candidate in CANDIDATES.items():
            z = cross_fitted_logits(candidate, x, y, known, folds=folds, seed=SEED)
            log_losses[name] = _mean_log_loss(z, y, known)
        name = min(log_losses, key=log_losses.__getitem__)
        return CalibratorSelection(name, CANDIDATES[name], log_losses)

    def select_shared(self) -> CalibratorSelection:
        """Select ``beta`` without cross-validation, and return it unfitted."""
        name = next(iter(CANDIDATES))
        return CalibratorSelection(name, CANDIDATES[name])

    def shared_calibrator(self) -> Calibrator | None:
        """Return the shared part of the selected calibrator, which is valid for new labels."""
        self._check_fitted()
        return self.calibrator_.shared_calibrator()

    def state(self) -> dict[str, Any]:
        """Return the selection and the parameters of its calibrator as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "selected": self.selected_,
            "log_losses": self.log_losses_,
            "n_labels": self.n_labels_,
            "state": self.calibrator_.state(),
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the selection and the parameters from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        names = ("selected", "log_losses", "n_labels", "state")
        if not (
            isinstance(state, dict)
            and state.keys() == set(names)
            and state["selected"] in list(CANDIDATES)
            and isinstance(state["state"], dict)
            and type(state["n_labels"]) is int
            and state["n_labels"] > 0
            and are_selection_log_losses(state["log_losses"])
        ):
            raise DataError(
                f"A saved calibration must contain valid values of {', '.join(names)}, where "
                f"selected is one of {', '.join(CANDIDATES)}; got "
                f"{truncate_calibrator_state(repr(state))}. Calibrate again."
            )
        self.calibrator_ = CANDIDATES[state["selected"]]().restore(state["state"])
        self.selected_, self.n_labels_ = state["selected"], state["n_labels"]
        self.log_losses_ = dict(state["log_losses"])
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        check_calibrated_label_count(x, self.n_labels_)
        return self.calibrator_.logits(x)


def _mean_log_loss(z: Array, y: Array, known: Flags) -> float:
    """Return the log loss in nats, averaged over the known targets.

    Args:
        z: Calibrated log-odds, ``(n, c)``.
        y: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
    """
    losses = np.empty(z.shape)
    for rows in row_blocks(z, n_bytes=CACHED_BYTES):
        np.logaddexp(0, z[rows], out=losses[rows])
        losses[rows] -= y[rows] * z[rows]
    return float(np.mean(losses.ravel() if known.all() else losses[known]))


def are_selection_log_losses(log_losses: object) -> bool:
    """Return whether a value is a dictionary of finite numbers by string; it may be empty."""
    return isinstance(log_losses, dict) and all(
        isinstance(name, str) and type(loss) in (int, float) and np.isfinite(loss)
        for name, loss in log_losses.items()
    )
