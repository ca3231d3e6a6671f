"""Adapt calibrated logits to images with other label frequencies (label shift, prior shift)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.calibration.fitting.input_validation import (
    check_positive_calibrator_setting,
    validate_calibrator_input,
)
from surelabel.counts import format_count
from surelabel.errors import ConfigError, InputError

TOLERANCE = 1e-6  # change of the logit shift of a label at which its iteration has converged


@dataclass(frozen=True)
class LabelShift:
    """Estimated label frequencies of new images, and the corresponding shift of the logits.

    Attributes:
        priors: Estimated fraction of the new images with each label, inside (0, 1), ``(c,)``.
        logit_shift: Shift to add to the calibrated logits, ``(c,)``.
        steps: Number of iterations of the estimation.
        converged: Whether the shifts of all labels converged.
    """

    priors: Array
    logit_shift: Array
    steps: int
    converged: bool

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Return the shifted calibrated logits ``(n, c)`` of new images, clipped to [-40, 40].

        Raises:
            InputError: If ``logits`` does not have two axes, if a logit is not finite, or if the
                number of labels is not the number of estimated shifts.
        """
        x = validate_calibrator_input(logits)
        if x.shape[1] != len(self.logit_shift):
            raise InputError(
                f"logits must have the {format_count(len(self.logit_shift), 'label')} whose shift "
                f"was estimated; got {format_count(x.shape[1], 'label')}. Estimate the shift "
                "again with these logits."
            )
        return np.clip(x + self.logit_shift, -LOGIT_LIMIT, LOGIT_LIMIT)


def estimate_label_shift(
    logits: npt.ArrayLike,
    prior: npt.ArrayLike,
    *,
    pseudo_count: float = 10.0,
    steps: int = 1000,
) -> LabelShift:
    """Estimate the label frequencies of unlabelled images from their calibrated logits.

        shift = logit(q) - logit(prior)
        q = (Σ sigmoid(logits + shift) + m · prior) / (n + m)

    Here q is the estimated fraction of the n new images with the label, m is ``pseudo_count``, and
    the sum is over the new images. Both equations are iterated until the shift converges,
    independently for each label (expectation-maximization). The estimate assumes that only the
    label frequencies changed. The distribution of the images with a label, and of the images
    without that label, must be unchanged. If the images also changed, for example because of a new
    camera or season, calibrate on new labelled images.

    Args:
        logits: Finite calibrated log-odds of n new images and c labels, ``(n, c)``.
        prior: Fraction of the calibration images with each label, inside (0, 1), ``(c,)``.
        pseudo_count: Weight of ``prior``, as a number of images, above 0. If there are few new
            images, the shift is small.
        steps: Maximum number of iterations, >= 1.

    Returns:
        The label frequencies, the shift of the logits, and whether the estimate converged.

    Raises:
        InputError: If there is no image, if a logit is not finite, or if ``prior`` is not one
            number inside (0, 1) for each label.
        ConfigError: If ``pseudo_count`` is not above 0, or if ``steps`` is not a whole number of at
            least 1.

    Source:
        Saerens, Latinne and Decaestecker, Adjusting the Outputs of a Classifier to New a Priori
        Probabilities: A Simple Procedure, Neural Computation, 2002. On the need for calibrated
        probabilities: Alexandari, Kundaje and Shrikumar, Maximum Likelihood with Bias-Corrected
        Calibration is Hard-To-Beat at Label Shift Adaptation, ICML 2020, arXiv:1901.06852.

    Differs:
        Each label is a binary problem. The pseudo-count is ours. Without a pseudo-count, the
        estimated frequency of a label with low probabilities in all images would converge to 0.

    Example:
        >>> estimate = estimate_label_shift([[2.0], [2.0], [2.0], [-2.0]], [0.5], pseudo_count=1)
        >>> estimate.priors.round(4), estimate.logit_shift.round(4), estimate.converged
        (array([0.7224]), array([0.9566]), True)
    """
    x = validate_calibrator_input(logits)
    if not len(x):
        raise InputError("logits must have at least one image; got none. Add new images.")
    prior = _validate_label_shift_prior(prior, x.shape[1])
    check_positive_calibrator_setting("pseudo_count", pseudo_count)
    if not float(steps).is_integer() or steps < 1:
        raise ConfigError(f"steps must be a whole number of at least 1; got {steps}.")
    prior_logits = logit(prior)
    shift, active = np.zeros_like(prior), np.ones(len(prior), dtype=bool)
    step = 0
    while active.any() and step < steps:
        expected_positives = expit(x[:, active] + shift[active]).sum(axis=0)
        q = (expected_positives + pseudo_count * prior[active]) / (len(x) + pseudo_count)
        previous, shift[active] = shift[active], logit(q) - prior_logits[active]
        active[active] = np.abs(shift[active] - previous) > TOLERANCE
        step += 1
    return LabelShift(expit(prior_logits + shift), shift, step, not active.any())


def _validate_label_shift_prior(prior: npt.ArrayLike, count: int) -> Array:
    """Return the prior as a float64 array of ``count`` numbers inside (0, 1)."""
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (count,):
        raise InputError(
            f"prior must have shape ({count},), one number per label; got {prior.shape}."
        )
    invalid = ~((prior > 0) & (prior < 1))  # also True for NaN
    if invalid.any():
        raise InputError(
            f"prior must be in (0, 1); got {prior[invalid][0]} for label {invalid.argmax()}. "
            "Leave out labels that are positive in all or in none of the calibration images; their "
            "shift is undefined."
        )
    return prior
