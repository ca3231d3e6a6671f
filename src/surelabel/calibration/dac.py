"""Calibrate labels that prompts were not tuned on, by distance-aware calibration (DAC)."""

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from surelabel.arrays import Array
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_calibrated_label_count,
    validate_calibrator_state,
)
from surelabel.calibration.interface import LabelTexts, OrderPreservation
from surelabel.calibration.platt import Platt
from surelabel.counts import format_count
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.shapes import check_shapes

SAME_LABEL_DISTANCE = 0.05  # a label with a nearer tuned vector has a factor of 1
MAX_DISTANCE = 2 + 1e-6  # largest distance of two unit vectors, with rounding errors


class Dac(BaseCalibrator):
    """Distance-aware calibration (DAC): Platt scaling, with a factor for each new label.

        z = a · x + b                        Platt scaling, shared by all labels
        logit_c = gamma_c · z_c
        gamma_c = exp(d_c(zero-shot) - d_c(tuned))

    Here x is the input logit or raw score. The distance d_c is the mean Euclidean distance of the
    text vector of label c to the k nearest text vectors of the labels of the fit. The distance is
    computed for the vectors of the frozen text encoder (zero-shot) and for the vectors of the
    learned prompts (tuned). If prompt tuning increased the distance of a new label, gamma_c is
    below 1 and the probability is closer to 0.5. Labels of the fit have a factor of 1. If the
    method learns no prompts, both distances are equal and all factors are 1.
    ``Recognizer.with_names`` computes the factors of new labels.

    On the emoji scenes of this package, the log loss of new labels is not lower than with
    ``Platt``; see the page docs/calibrators.md. Use this calibrator for comparisons with the paper.

    Args:
        neighbours: Number of nearest labels of the fit in d_c (k in the paper), >= 1. If the fit
            has fewer labels, all of them are used.

    Attributes:
        shared_: Fitted shared ``Platt``.
        zero_shot_distances_: Distance d_c of the zero-shot vectors, in [0, 2], ``(c,)``. The value
            is 0 for labels of the fit and for labels within 0.05 of them.
        tuned_distances_: Distance d_c of the tuned vectors, in [0, 2], ``(c,)``. The value is 0 for
            labels of the fit and for labels within 0.05 of them.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Wang et al., Open-Vocabulary Calibration for Fine-tuned CLIP, ICML 2024, arXiv:2402.04655,
        and the authors' code.

    Differs:
        The authors multiply all logits of an image by the factor of its predicted class. Here each
        logit is multiplied by the factor of its label. Platt scaling comes first, so that a
        probability of 0.5 is a fixed point also for raw scores. With Platt scaling, the log loss of
        new labels was lower after a fit on few images, and about equal after a fit on many images.
        As in the authors' code, a label whose tuned vector is within 0.05 of the vector of a label
        of the fit has a factor of 1. The authors divide by k also if the fit has fewer labels.

    Example:
        >>> calibrator = Dac(neighbours=1).fit([[0.1, 0.3], [0.2, 0.4]], [[0, 0], [1, 1]])
        >>> fit_texts = LabelTexts(np.eye(3)[:2], np.eye(3)[:2])
        >>> new_label = LabelTexts(np.array([[0.6, 0.0, 0.8]]), np.array([[0.0, 0.0, 1.0]]))
        >>> calibrator.with_label_texts(fit_texts, new_label).factors.round(4)
        array([0.5946])
    """

    keeps_order: ClassVar[OrderPreservation] = "strictly"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = False

    def __init__(self, *, neighbours: int = 5) -> None:
        if neighbours != int(neighbours) or neighbours < 1:
            raise ConfigError(f"neighbours must be a whole number of at least 1; got {neighbours}.")
        self.neighbours = neighbours

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the shared Platt scaling on held-out data, with a factor of 1 for all labels.

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
        self.shared_ = Platt().fit(logits, targets, known)
        n_labels = np.shape(logits)[1]
        self.zero_shot_distances_ = np.zeros(n_labels)
        self.tuned_distances_ = np.zeros(n_labels)
        return self

    @property
    def factors(self) -> Array:
        """Return the factor gamma_c of each label, above 0, ``(c,)``."""
        self._check_fitted()
        factors: Array = np.exp(self.zero_shot_distances_ - self.tuned_distances_)
        return factors

    def with_label_texts(self, fit_texts: LabelTexts, texts: LabelTexts) -> Self:
        """Return a copy of the fitted calibrator for other labels, with their factors.

        Args:
            fit_texts: Text vectors of the labels of the fit, each ``(b, d)``.
            texts: Text vectors of c other labels, each ``(c, d)``. Labels of the fit may be among
                them.

        Raises:
            NotFitted: If the calibrator is not fitted.
            InputError: If shapes differ, or if a vector is zero or not finite.
        """
        self._check_fitted()
        zero_shot = _distances_to_fit_labels(texts.zero_shot, fit_texts.zero_shot)
        tuned = _distances_to_fit_labels(texts.tuned, fit_texts.tuned)
        check_shapes(zero_shot=(zero_shot, "c b"), tuned=(tuned, "c b"))
        is_new = tuned[:, 0] >= SAME_LABEL_DISTANCE
        k = int(self.neighbours)
        other = copy(self)
        other.zero_shot_distances_ = is_new * zero_shot[:, :k].mean(axis=1)
        other.tuned_distances_ = is_new * tuned[:, :k].mean(axis=1)
        return other

    def shared_calibrator(self) -> Platt:
        """Return the shared Platt scaling, which is valid for labels without text vectors."""
        self._check_fitted()
        return self.shared_

    def state(self) -> dict[str, Any]:
        """Return the shared parameters, distances and neighbours as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "neighbours": int(self.neighbours),
            "zero_shot_distances": self.zero_shot_distances_.tolist(),
            "tuned_distances": self.tuned_distances_.tolist(),
            **self.shared_.state(),
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the parameters and the setting ``neighbours`` from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(
            state, neighbours="", zero_shot_distances="c", tuned_distances="c", slope="", shift=""
        )
        zero_shot, tuned = arrays["zero_shot_distances"], arrays["tuned_distances"]
        distances, neighbours = np.stack([zero_shot, tuned]), float(arrays["neighbours"])
        is_count = neighbours.is_integer() and neighbours >= 1
        if not is_count or distances.min() < 0 or distances.max() > MAX_DISTANCE:
            raise DataError(
                "Saved distances of text vectors must be in [0, 2], and neighbours must be a whole "
                f"number >= 1; got distances from {distances.min()} to {distances.max()} and "
                f"{neighbours:g} neighbours. Calibrate again."
            )
        self.neighbours = int(neighbours)
        self.shared_ = Platt().restore({name: state[name] for name in ("slope", "shift")})
        self.zero_shot_distances_, self.tuned_distances_ = zero_shot, tuned
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        check_calibrated_label_count(x, len(self.factors))
        return self.factors * (self.shared_.slope_ * x + self.shared_.shift_)


def _distances_to_fit_labels(texts: Array, fit_texts: Array) -> Array:
    """Return the ascending distances of each label to the labels of the fit, ``(c, b)``."""
    texts, fit_texts = _unit_text_vectors(texts), _unit_text_vectors(fit_texts)
    check_shapes(texts=(texts, "c d"), fit_texts=(fit_texts, "b d"))
    return np.sort(cdist(texts, fit_texts), axis=1)


def _unit_text_vectors(texts: Array) -> Array:
    """Return the vectors ``(c, d)``, divided by their lengths, in float64."""
    texts = np.asarray(texts, dtype=np.float64)
    check_shapes(texts=(texts, "c d"))
    lengths = np.linalg.norm(texts, axis=1, keepdims=True)
    is_valid = np.isfinite(lengths) & (lengths > 0)
    if not is_valid.all():
        raise InputError(
            "Text vectors must be finite and nonzero; got "
            f"{format_count((~is_valid).sum(), 'invalid vector')}. Check the text encoder and the "
            "learned prompts."
        )
    unit_vectors: Array = texts / lengths
    return unit_vectors
