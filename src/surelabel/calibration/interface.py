"""This module defines the interface of calibrators, and optional abilities of calibrators.

A calibrator has an optional ability, such as ``UsesImageVectors``, if it has the methods of the
protocol. The protocol is not a base class.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags

OrderPreservation = Literal["strictly", "with ties", "no"]
Rows = npt.NDArray[np.int64] | Flags | slice
ALL_ROWS = slice(None)


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
        """Return calibrated log-odds in [-40, 40], ``(n, c)``.

        Raises:
            NotFitted: If the calibrator is not fitted.
            InputError: If ``logits`` does not have two axes, or a value is not finite.
        """

    def predict_proba(self, logits: npt.ArrayLike) -> Array:
        """Return the sigmoid of the calibrated log-odds, ``(n, c)``."""

    def shared_calibrator(self) -> "Calibrator | None":
        """Return a calibrator for new labels, with the parameters that all labels share.

        Returns:
            The calibrator itself if ``shares_parameters`` is True. Otherwise, a calibrator with the
            shared parameters only, or None if no parameter is shared.
        """

    def state(self) -> dict[str, Any]:
        """Return the fitted parameters by name, as numbers and nested lists that JSON can store.

        Raises:
            NotFitted: If the calibrator is not fitted.
        """

    def restore(self, state: dict[str, Any]) -> Self:
        """Load fitted parameters from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name, as in scikit-learn."""

    def set_params(self, **params: Any) -> Self:
        """Change settings by name and return the calibrator, as in scikit-learn."""


@runtime_checkable
class UsesImageVectors(Protocol):
    """Calibrator that corrects the logits of an image by the vector of this image."""

    def with_image_vectors(self, vectors: npt.ArrayLike | None) -> Self:
        """Return a copy whose ``fit`` and ``logits`` use the vectors of n images.

        The copy has the fitted parameters of the calibrator. ``Recognizer`` and
        ``cross_fitted_logits`` call ``with_image_vectors`` with other images before each use.

        Args:
            vectors: Image vectors of the encoder, ``(n, d)``, in the order of the rows of the
                logits. If None, the copy has no vectors, and its ``fit`` and ``logits`` raise
                ConfigError.

        Raises:
            InputError: If the axes are not ``(n, d)``, or if a value is not finite.
        """


@runtime_checkable
class HasLabelParameters(Protocol):
    """Calibrator whose parameters per label can be combined with those that all labels share."""

    def with_labels(self, columns: Sequence[int | None]) -> Self:
        """Return the fitted calibrator for other labels.

        Args:
            columns: Index of each of c labels among the labels of this calibrator, or None for a
                new label, which uses the shared parameters.

        Raises:
            NotFitted: If the calibrator is not fitted.
        """


@dataclass(frozen=True)
class CalibratorSelection:
    """Calibrator that was selected among several calibrators.

    Attributes:
        name: Key of the calibrator in ``CALIBRATORS``.
        make_calibrator: Function that returns the calibrator, not fitted.
        log_losses: Cross-validated log loss in nats of each calibrator by key. If there was no
            cross-validation, the dictionary is empty.
    """

    name: str
    make_calibrator: Callable[[], Calibrator]
    log_losses: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class SelectsCalibrator(Protocol):
    """Calibrator that selects one of several calibrators.

    ``Recognizer`` fits and stores the selected calibrator.
    """

    def select(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> CalibratorSelection:
        """Return the selected calibrator, unfitted, for held-out logits and targets, ``(n, c)``."""

    def select_shared(self) -> CalibratorSelection:
        """Return an unfitted calibrator whose parameters all labels share, without use of data."""


@dataclass(frozen=True)
class LabelTexts:
    """Text vectors of c labels, before and after the training of a method.

    Attributes:
        zero_shot: Vectors of the frozen text encoder, ``(c, d)``.
        tuned: Vectors with the learned prompts of the method, ``(c, d)``. If the method learns no
            prompts, they are equal to ``zero_shot``.
    """

    zero_shot: Array
    tuned: Array


@runtime_checkable
class UsesLabelTexts(Protocol):
    """Calibrator that computes its parameters for new labels from text vectors."""

    def with_label_texts(self, fit_texts: LabelTexts, texts: LabelTexts) -> Self:
        """Return the fitted calibrator for other labels.

        ``Recognizer.with_names`` calls ``with_label_texts``.

        Args:
            fit_texts: Text vectors of the labels that the calibrator was fitted on.
            texts: Text vectors of the other labels.

        Raises:
            NotFitted: If the calibrator is not fitted.
            InputError: If shapes differ, or if a vector is zero or not finite.
        """


def calibrator_for_images(
    calibrator: Calibrator, vectors: npt.NDArray[np.floating] | None, rows: Rows = ALL_ROWS
) -> Calibrator:
    """Return a copy of the calibrator with the vectors of some images.

    A calibrator that does not use image vectors is returned unchanged.

    Args:
        calibrator: Any calibrator.
        vectors: Vectors of n images, ``(n, d)``, or None if there are no vectors.
        rows: Row numbers, mask or slice of the images.

    Raises:
        InputError: If the calibrator uses image vectors and the vectors are invalid.
    """
    if not isinstance(calibrator, UsesImageVectors):
        return calibrator
    return calibrator.with_image_vectors(None if vectors is None else vectors[rows])
