"""Evaluate the correction of a calibration on a small random sample of annotated images."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import LOGIT_LIMIT, Array, Flags, validate_target_arrays
from surelabel.calibration import assign_folds, fit_scale_and_shift
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.metrics import ConfidenceInterval, bootstrap_interval, noise_floor
from surelabel.metrics.ece import ece
from surelabel.metrics.resampling.calibration_test import calibration_test_p_value
from surelabel.metrics.resampling.studentized_bootstrap import studentized_bootstrap_interval
from surelabel.shapes import check_shapes

MIN_RECALIBRATION_IMAGES = 20
RECALIBRATION_FOLDS = 10
SIGNIFICANCE_LEVEL = 0.05  # of the test whether the current probabilities are calibrated


@dataclass(frozen=True, eq=False)
class Recalibration:
    """Scale and shift of the log-odds, and their effect on a random sample of images.

    All values after the recalibration are cross-fitted: the scale and the shift of an image were
    fitted on other images.

    Attributes:
        scale: Factor of the log-odds, fitted on all images.
        shift: Constant that is added to the scaled log-odds, fitted on all images.
        n_images: Number of images with a known target.
        n_targets: Number of known targets.
        log_loss_before: Mean log loss of the current probabilities, in nats.
        log_loss_after: Mean log loss after the recalibration, in nats.
        log_loss_change: Mean log loss after minus before, with its 95 % interval over images.
        ece_before: Calibration error of the current probabilities, with its 95 % interval.
        ece_after: Calibration error after the recalibration, with its 95 % interval.
        noise_floor_before: Noise floor of ``ece_before``.
        noise_floor_after: Noise floor of ``ece_after``.
        p_value: p-value of the hypothesis that the current probabilities are calibrated.
        cross_fitted_logits: Log-odds after the recalibration in [-40, 40], ``(n, c)``. The order
            is that of all given images, including those without a known target.
    """

    scale: float
    shift: float
    n_images: int
    n_targets: int
    log_loss_before: float
    log_loss_after: float
    log_loss_change: ConfidenceInterval
    ece_before: ConfidenceInterval
    ece_after: ConfidenceInterval
    noise_floor_before: float
    noise_floor_after: float
    p_value: float
    cross_fitted_logits: Array

    @property
    def is_improvement(self) -> bool:
        """Return whether the recalibration improves the log loss with evidence.

        The interval of the change of the log loss must be below 0, and the test of calibration must
        reject the current probabilities at the level 0.05. The second condition is needed for few
        positive targets, because the interval can then be too narrow.
        """
        return self.log_loss_change.high < 0 and self.p_value < SIGNIFICANCE_LEVEL

    @property
    def sentence(self) -> str:
        """Return the result as sentences."""
        change = self.log_loss_change
        images = format_count(self.n_images, "image")
        numbers = (
            f"The cross-fitted log loss of {images} changes from {self.log_loss_before:.4f} to "
            f"{self.log_loss_after:.4f} (difference {_format_difference(change.value)}, 95 % "
            f"interval {_format_difference(change.low)} to {_format_difference(change.high)})."
        )
        return f"{self._conclusion} {numbers}"

    @property
    def _conclusion(self) -> str:
        """Return a sentence on the interval of the log loss and the test of calibration."""
        is_rejected, is_lower = self.p_value < SIGNIFICANCE_LEVEL, self.log_loss_change.high < 0
        if is_rejected and is_lower:
            return "The recalibration improves the probabilities."
        if is_rejected:
            return (
                "There is evidence of miscalibration, but no evidence that the recalibration "
                "improves the log loss, so the calibration is kept."
            )
        if is_lower:
            return (
                "The recalibration improves the log loss of these images, but the test of "
                "calibration does not reject the probabilities, so the calibration is kept."
            )
        return "There is no evidence of miscalibration, so the calibration is kept."

    def as_dict(self) -> dict[str, Any]:
        """Return all values as a dictionary for JSON."""
        change, before, after = self.log_loss_change, self.ece_before, self.ece_after
        return {
            "n_images": self.n_images,
            "n_targets": self.n_targets,
            "scale": self.scale,
            "shift": self.shift,
            "is_improvement": self.is_improvement,
            "p_value": self.p_value,
            "log_loss": {
                "before": self.log_loss_before,
                "after": self.log_loss_after,
                "change": change.value,
                "low": change.low,
                "high": change.high,
            },
            "ece": {
                "before": before.value,
                "after": after.value,
                "noise_floor_before": self.noise_floor_before,
                "noise_floor_after": self.noise_floor_after,
                "before_low": before.low,
                "before_high": before.high,
                "after_low": after.low,
                "after_high": after.high,
            },
            "sentence": self.sentence,
        }


def evaluate_recalibration(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
) -> Recalibration:
    """Fit a scale and a shift of calibrated log-odds, and evaluate them by cross-fitting.

    The images must be sampled at random, independently of the probabilities and of earlier
    corrections. Otherwise, the scale and the shift are biased. Images without a known target are
    left out of the fit and of all metrics.

    Args:
        logits: Calibrated log-odds of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known.
        seed: Seed of the folds and of the resamples.

    Raises:
        InputError: If fewer than 20 images have a known target, if the shapes differ, if a logit is
            not finite, or if a known target is outside [0, 1].

    Source:
        None; ours. The page docs/calibrators.md describes simulations.

    Example:
        >>> z = np.random.default_rng(0).normal(-1, 2, size=(40, 20))
        >>> y = np.random.default_rng(1).random(z.shape) < expit(z)
        >>> evaluate_recalibration(z, y).is_improvement
        False
        >>> recalibration = evaluate_recalibration(2 * z + 1, y)
        >>> recalibration.is_improvement, round(recalibration.scale, 1)
        (True, 0.5)
    """
    z = np.asarray(logits, dtype=np.float64)
    y, known = validate_target_arrays(targets, known)
    check_shapes(logits=(z, "n c"), targets=(y, "n c"))
    is_labelled = known.any(axis=1)
    check_recalibration_images(int(is_labelled.sum()))
    corrected = _cross_fitted_correction(z, y, known, seed)
    scale, shift = fit_scale_and_shift(z, y, known)
    y, known = y[is_labelled], known[is_labelled]
    z_before, z_after = z[is_labelled], corrected[is_labelled]
    counts = known.sum(axis=1)
    before, after = (_log_loss_sums(values, y, known) for values in (z_before, z_after))
    p, q = expit(z_before), expit(z_after)
    return Recalibration(
        scale=scale,
        shift=shift,
        n_images=len(y),
        n_targets=int(counts.sum()),
        log_loss_before=float(before.sum() / counts.sum()),
        log_loss_after=float(after.sum() / counts.sum()),
        log_loss_change=studentized_bootstrap_interval(after - before, counts, seed=seed),
        ece_before=_ece_interval(p, y, known, seed),
        ece_after=_ece_interval(q, y, known, seed),
        noise_floor_before=noise_floor(ece, p, known, seed=seed),
        noise_floor_after=noise_floor(ece, q, known, seed=seed),
        p_value=calibration_test_p_value(z_before, y, known, seed=seed),
        cross_fitted_logits=corrected,
    )


def check_recalibration_images(n_images: int) -> None:
    """Check that enough images are annotated for a recalibration.

    Raises:
        InputError: If there are fewer than 20 images.
    """
    if n_images < MIN_RECALIBRATION_IMAGES:
        raise InputError(
            f"A recalibration requires at least {MIN_RECALIBRATION_IMAGES} annotated images that "
            f"were sampled at random; got {n_images}. Annotate "
            f"{format_count(MIN_RECALIBRATION_IMAGES - n_images, 'more image')}."
        )


def _cross_fitted_correction(z: Array, y: Array, known: Flags, seed: int) -> Array:
    """Return log-odds that are corrected by a scale and a shift of other images, ``(n, c)``."""
    fold = assign_folds(known, RECALIBRATION_FOLDS, np.random.default_rng(seed))
    corrected = np.empty_like(z)
    for k in range(RECALIBRATION_FOLDS):
        in_fold = fold == k
        scale, shift = fit_scale_and_shift(z[~in_fold], y[~in_fold], known[~in_fold])
        corrected[in_fold] = scale * z[in_fold] + shift
    return corrected.clip(-LOGIT_LIMIT, LOGIT_LIMIT)


def _format_difference(value: float) -> str:
    """Return a number with its sign and four decimals, or ``0.0000`` if it is rounded to 0."""
    text = f"{value:+.4f}"
    return text if float(text) else "0.0000"


def _log_loss_sums(logits: Array, targets: Array, known: Flags) -> Array:
    """Return the sum of the log losses of the known targets of each image, ``(n,)``."""
    sums: Array = ((np.logaddexp(0, logits) - targets * logits) * known).sum(axis=1)
    return sums


def _ece_interval(
    probabilities: Array, targets: Array, known: Flags, seed: int
) -> ConfidenceInterval:
    """Return the calibration error with its interval, whose lower end is at least 0."""
    interval = bootstrap_interval(ece, probabilities, targets, known, seed=seed)
    return replace(interval, low=max(interval.low, 0.0))
