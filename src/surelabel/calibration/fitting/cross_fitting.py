"""Calibrate the logits of each image after a fit on other images (cross-fitting)."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.calibration.fitting.input_validation import (
    contains_both_classes,
    validate_calibration_data,
)
from surelabel.calibration.interface import (
    Calibrator,
    SelectsCalibrator,
    calibrator_for_images,
)
from surelabel.errors import ConfigError, InputError
from surelabel.mapped_arrays import mapped_zeros, to_mapped_array
from surelabel.shapes import check_shapes


def cross_fitted_logits(
    make_calibrator: Callable[[], Calibrator],
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    vectors: npt.NDArray[np.floating] | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Array:
    """Return out-of-fold logits, each calibrated by a calibrator that was fitted on other images.

    The images are split into random folds. The logits of each fold are calibrated by a calibrator
    that was fitted on all other folds. The logits of an image therefore do not depend on the
    targets of this image. A calibrator that is fitted on all images is on average slightly better
    than these calibrators.

    If the images outside a fold have no known positive or no known negative target, no calibrator
    can be fitted. All logits of the fold are then log((P + 1) / (N + 1)), for P known positive and
    N known negative targets outside the fold.

    Args:
        make_calibrator: Function that returns an unfitted calibrator, such as an entry of
            ``CALIBRATORS``.
        logits: Finite log-odds or raw scores of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except
            NaN are known.
        vectors: Vectors of the images, ``(n, d)``, for calibrators that use image vectors. If None,
            there are no vectors.
        folds: Number of folds, >= 2 and at most the number of images with a known target.
        seed: Seed of the random order in which images are assigned to folds.

    Returns:
        Calibrated log-odds in [-40, 40], ``(n, c)``, also for images without a known target.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if a known target is outside
            [0, 1], or if the known targets contain no positive or no negative target. If there are
            fewer images with a known target than folds.
        ConfigError: If ``folds`` is not a whole number of at least 2, or if the calibrator requires
            vectors and ``vectors`` is None.

    Source:
        Cross-validated calibration: Platt, Probabilistic Outputs for Support Vector Machines, 1999.
        The constant is the log-odds of Platt's smoothed target for a single class.

    Example:
        >>> from surelabel.calibration.platt import Platt
        >>> x, y = [[-3.0], [-1.0], [1.0], [3.0]], [[0], [1], [0], [1]]
        >>> cross_fitted_logits(Platt, x, y, folds=2).round(2)
        array([[-0.  ],
               [-0.23],
               [ 0.23],
               [ 0.  ]])
    """
    x, y, known = validate_calibration_data(logits, targets, known)
    check_shapes(logits=(x, "n c"), vectors=(vectors, "n d"))
    fold = assign_folds(known, folds, np.random.default_rng(seed))
    calibrated = mapped_zeros(x.shape, x.dtype)
    for k in range(int(folds)):
        in_fold = fold == k
        calibrator = calibrator_for_images(make_calibrator(), vectors, ~in_fold)
        has_folds = isinstance(calibrator, SelectsCalibrator)  # and copies arrays for each fold
        other_x, other_y, other_known = (
            to_mapped_array(array[~in_fold]) if has_folds else array[~in_fold]
            for array in (x, y, known)
        )
        if contains_both_classes(other_y, other_known):
            calibrator.fit(other_x, other_y, other_known)
            calibrator = calibrator_for_images(calibrator, vectors, in_fold)
            calibrated[in_fold] = calibrator.logits(x[in_fold])
        else:
            calibrated[in_fold] = smoothed_prevalence_log_odds(other_y, other_known)
    return calibrated


def assign_folds(known: Flags, folds: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return a random fold index for each image, from 0 to folds - 1, ``(n,)``.

    The numbers of images with a known target differ by at most 1 between folds, and so do the
    numbers of all images. The folds do not depend on the values of the targets. If they did, the
    targets of an image would influence which images its own calibrator is fitted on.

    Args:
        known: True where the target is known, ``(n, c)``.
        folds: Number of folds.
        rng: Random generator that shuffles the images before the assignment.

    Raises:
        InputError: If there are fewer images with a known target than folds.
        ConfigError: If ``folds`` is not a whole number of at least 2.
    """
    if not float(folds).is_integer() or folds < 2:
        raise ConfigError(f"folds must be a whole number of at least 2; got {folds}.")
    is_labelled = known.sum(axis=1) > 0
    if is_labelled.sum() < folds:
        raise InputError(
            f"folds must be at most the number of images with a known target; got {folds} folds "
            f"and {is_labelled.sum()} such images. Use fewer folds or label more images."
        )
    order = rng.permutation(len(known))
    order = order[np.argsort(~is_labelled[order], kind="stable")]  # images with targets first
    fold = np.empty(len(known), dtype=np.int64)
    fold[order] = np.arange(len(known)) % folds
    return fold


def smoothed_prevalence_log_odds(targets: Array, known: Flags) -> float:
    """Return log((P + 1) / (N + 1)), for P known positive and N known negative targets.

    Args:
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.
    """
    positives = float(targets.sum())
    return float(np.log((positives + 1) / (float(known.sum()) - positives + 1)))
