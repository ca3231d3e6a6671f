"""Calibrate with beta calibration, followed by a shift by the co-occurrence of labels."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit

from surelabel.arrays import Array, Flags
from surelabel.calibration.beta import Beta
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_calibrated_label_count,
    check_positive_calibrator_setting,
    validate_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.interface import OrderPreservation
from surelabel.errors import ConfigError, DataError

POSITIVE_TARGET = 0.5  # soft targets above this value are counted as positive
MAX_STRENGTH = 1.0  # with one certain anchor, the odds given the anchor replace the prior odds
DECIMALS = 3  # decimals of the stored logarithms; 1,000 labels need about 7 MB
MIN_RATE = 1e-9  # lower bound of a probability whose log-odds are computed


class Cooccurrence(BaseCalibrator):
    """Beta calibration, then a shift of each label by other labels that are probably positive.

        logit_c = z_c + s · (log-odds(q_c) - log-odds(pi_c))
        q_c     = (Σ_k a_k · P(c | k) + max(0, 1 - Σ_k a_k) · pi_c) / max(1, Σ_k a_k)
        P(c | k) = (n_kc + m · pi_c) / (n_k + m)

    Here z is the logit after ``Beta``, shared by all labels, and pi_c is the fraction of positives
    of label c. The sums are over the anchors k, the other labels of the image. The weight a_k of an
    anchor is its probability sigmoid(z_k), or 0 if the probability is not above
    ``anchor_probability``. Among the calibration images, n_k images have label k, and n_kc images
    have the labels k and c. Only images with a known target of label c are counted, and soft
    targets count as positive above 0.5. m is ``pseudo_count``.

    The strength s in [0, 1] minimizes the log loss on the calibration images. Each calibration
    image is scored with the counts of the other images. If co-occurrence does not reduce the log
    loss, s is 0 and the logits are those of ``Beta``.

    The shift of a label differs between images. Therefore the order of the images and the mAP
    change. On scenes-80, the mAP of ``zero_shot`` and ``tiles`` increases if the calibrator is
    fitted on annotated images. If the calibrator is fitted without labels, only the mAP of
    ``zero_shot`` increases; see the page docs/label-free.md. New labels have no counts and use only
    the shared ``Beta``.

    Args:
        pseudo_count: Weight of pi_c in P(c | k), as a number of images with label k, above 0. The
            pseudo-count shrinks the co-occurrence of rare labels towards independence.
        anchor_probability: Probability above which a label is an anchor, in [0, 1).

    Attributes:
        shared_: Fitted shared ``Beta``.
        rates_: Fraction of positives pi_c, smoothed, ``(c,)``.
        log_ratios_: log(P(c | k) / pi_c) of anchor k (row) and label c (column), rounded to three
            decimals, ``(c, c)``. The diagonal is 0.
        strength_: Strength s, in [0, 1].

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        After BCP, ICML 2026, arXiv:2606.12925: a confident anchor label shifts the log-odds of
        other labels by co-occurrence.

    Differs:
        Only a short description of BCP was available, so the formulas are ours and no result is
        comparable with the paper. The paper estimates co-occurrence online during inference. Here
        co-occurrence is counted on the calibration images, so that the logits of an image do not
        depend on earlier images. The inputs are calibrated probabilities, and the strength is
        fitted.

    Example:
        >>> x = [[2.0, -1.0], [2.0, 0.0], [-2.0, -1.0], [-2.0, 0.0]] * 25
        >>> y = [[1, 1], [1, 1], [0, 0], [0, 0]] * 25
        >>> calibrator = Cooccurrence().fit(x, y)
        >>> np.exp(calibrator.log_ratios_).round(2)
        array([[1.  , 1.83],
               [1.83, 1.  ]])
        >>> calibrator.predict_proba([[2.0, 0.0], [-2.0, 0.0]])[:, 1].round(2)
        array([0.94, 0.64])
    """

    keeps_order: ClassVar[OrderPreservation] = "no"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = False

    def __init__(self, *, pseudo_count: float = 10.0, anchor_probability: float = 0.3) -> None:
        check_positive_calibrator_setting("pseudo_count", pseudo_count)
        if not 0 <= anchor_probability < 1:
            raise ConfigError(f"anchor_probability must be in [0, 1); got {anchor_probability}.")
        self.pseudo_count, self.anchor_probability = pseudo_count, anchor_probability

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the shared parameters, count the co-occurrence and fit the strength.

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
        positive, is_known = (y > POSITIVE_TARGET).astype(np.float64), known.astype(np.float64)
        self.shared_ = Beta().fit(x, y, known)
        self.rates_ = (positive.sum(axis=0) + 0.5) / (is_known.sum(axis=0) + 1)
        counts = positive.T @ positive, positive.T @ is_known
        prior = self.pseudo_count * self.rates_
        conditional = (counts[0] + prior) / (counts[1] + self.pseudo_count)
        self.log_ratios_ = np.log(conditional / self.rates_).round(DECIMALS)
        np.fill_diagonal(self.log_ratios_, 0.0)
        z = self.shared_.logits(x)
        shift = self._held_out_shift(self._anchor_weights(z), positive, conditional, counts)
        self.strength_ = _fit_cooccurrence_strength(z, shift, y, known)
        return self

    def shared_calibrator(self) -> Beta:
        """Return the shared beta calibration, which is valid for new labels."""
        self._check_fitted()
        return self.shared_

    def state(self) -> dict[str, Any]:
        """Return the parameters and ``anchor_probability`` as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "anchor_probability": self.anchor_probability,
            "rates": self.rates_.tolist(),
            "log_ratios": self.log_ratios_.tolist(),
            "strength": self.strength_,
            **self.shared_.state(),
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the parameters and the setting ``anchor_probability`` from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        arrays = validate_calibrator_state(
            state,
            anchor_probability="",
            rates="c",
            log_ratios="c c",
            strength="",
            slopes="k",
            shift="",
        )
        rates, strength = arrays["rates"], float(arrays["strength"])
        anchor_probability = float(arrays["anchor_probability"])
        if not (
            ((rates > 0) & (rates < 1)).all()
            and 0 <= strength <= MAX_STRENGTH
            and 0 <= anchor_probability < 1
        ):
            raise DataError(
                "Saved rates must be in (0, 1), strength in [0, 1] and anchor_probability in "
                f"[0, 1); got rates from {rates.min()} to {rates.max()}, strength {strength} and "
                f"anchor_probability {anchor_probability}. Calibrate again."
            )
        self.shared_ = Beta().restore({name: state[name] for name in ("slopes", "shift")})
        self.rates_, self.log_ratios_ = rates, arrays["log_ratios"]
        self.strength_, self.anchor_probability = strength, anchor_probability
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        check_calibrated_label_count(x, len(self.rates_))
        z = self.shared_.logits(x)
        conditional = self.rates_ * np.exp(self.log_ratios_)
        np.fill_diagonal(conditional, 0.0)
        weights = self._anchor_weights(z)
        return z + self.strength_ * self._shift(weights, weights @ conditional)

    def _anchor_weights(self, z: Array) -> Array:
        """Return the weight a_k of each label as an anchor, ``(n, c)``."""
        p: Array = expit(z)
        return np.where(p > self.anchor_probability, p, 0.0)

    def _shift(self, weights: Array, weighted_conditional: Array) -> Array:
        """Return log-odds(q_c) - log-odds(pi_c), ``(n, c)``.

        Args:
            weights: Weight of each label as an anchor, ``(n, c)``.
            weighted_conditional: Σ_k a_k · P(c | k) over the anchors k other than c, ``(n, c)``.
        """
        total = weights.sum(axis=1, keepdims=True) - weights
        q = (weighted_conditional + np.maximum(1 - total, 0) * self.rates_) / np.maximum(total, 1)
        shift: Array = logit(np.clip(q, MIN_RATE, 1 - MIN_RATE)) - logit(self.rates_)
        return shift

    def _held_out_shift(
        self, weights: Array, positive: Array, conditional: Array, counts: tuple[Array, Array]
    ) -> Array:
        """Return the shift of each calibration image, with the counts of the other images.

        Args:
            weights: Weight of each label as an anchor, ``(n, c)``.
            positive: 1 for positive targets, otherwise 0, ``(n, c)``.
            conditional: P(c | k) with the counts of all images, ``(c, c)``.
            counts: Numbers of images with label k that also have label c (n_kc), and that have a
                known target of label c (n_k), ``(c, c)`` each.
        """
        both, known = counts
        divisor = np.maximum(known - 1, 0) + self.pseudo_count
        without_image = (both + self.pseudo_count * self.rates_) / divisor
        present, absent = weights * positive, weights * (1 - positive)
        other_labels = 1 - np.eye(len(both))
        summed = present @ (other_labels * without_image) + absent @ (other_labels * conditional)
        summed -= positive * (present @ (other_labels / divisor))
        return self._shift(weights, summed)


def _fit_cooccurrence_strength(z: Array, shift: Array, targets: Array, known: Flags) -> float:
    """Return the factor of ``shift`` in [0, 1] with the lowest log loss, which is convex.

    Args:
        z: Logits without the shift, ``(n, c)``.
        shift: Shifts with the counts of the other images, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
    """
    z, shift, targets = z[known], shift[known], targets[known]

    def slope(strength: float) -> float:
        return float(((expit(z + strength * shift) - targets) * shift).mean())

    if slope(0.0) >= 0:
        return 0.0
    if slope(MAX_STRENGTH) <= 0:
        return MAX_STRENGTH
    return float(brentq(slope, 0.0, MAX_STRENGTH))
