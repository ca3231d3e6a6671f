"""Cross-fitting: calibrate the logits of each image after a fit on other images."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.calibration.fitting.input_validation import validate_calibrator_input
from surelabel.calibration.interface import Calibrator
from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes


def cross_fitted_logits(
    make_calibrator: Callable[[], Calibrator],
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
) -> Array:
    """Return out-of-fold logits, each calibrated by a calibrator that was fitted on other images.

    The images are split into folds that are stratified by label. The logits of each fold are
    calibrated by a calibrator that was fitted on all other folds. Each calibrator is therefore
    evaluated only on images that it was not fitted on. A calibrator that is fitted on all images is
    on average slightly better than these calibrators.

    Args:
        make_calibrator: Function that returns an unfitted calibrator, such as an entry of
            ``CALIBRATORS``.
        logits: Finite log-odds or raw scores of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except
            NaN are known.
        folds: Number of folds, >= 2 and at most the number of images with a known target.
        seed: Seed of the random order in which images are assigned to folds.

    Returns:
        Calibrated log-odds in [-40, 40], ``(n, c)``, also for images without a known target.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if a known target is outside [0,
            1], if there are fewer images with a known target than folds, or if the images outside a
            fold have no known positive or no known negative target.
        ConfigError: If ``folds`` is not a whole number of at least 2.

    Source:
        Stacked or cross-validated calibration: Platt, Probabilistic Outputs for Support Vector
        Machines, 1999; folds as in Sechidis, Tsoumakas and Vlahavas, On the Stratification of
        Multi-label Data, ECML PKDD 2011.

    Differs:
        As in the source, images with the rarest label are assigned first, each to the fold with the
        fewest images with this label. Here the labels are sorted by frequency only once, not after
        every image.

    Example:
        >>> from surelabel.calibration.platt import Platt
        >>> x, y = [[-3.0], [-1.0], [1.0], [3.0]], [[0], [1], [0], [1]]
        >>> cross_fitted_logits(Platt, x, y, folds=2).round(2)
        array([[-0.  ],
               [-0.23],
               [ 0.23],
               [ 0.  ]])
    """
    x = validate_calibrator_input(logits)
    y, known = validate_target_arrays(targets, known)
    check_shapes(logits=(x, "n c"), targets=(y, "n c"))
    fold = assign_folds(y, known, folds, np.random.default_rng(seed))
    calibrated = np.empty_like(x)
    for k in range(folds):
        in_fold = fold == k
        calibrator = make_calibrator().fit(x[~in_fold], y[~in_fold], known[~in_fold])
        calibrated[in_fold] = calibrator.logits(x[in_fold])
    return calibrated


def assign_folds(
    y: Array, known: Flags, folds: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the fold index of each image, ``(n,)``, so that rare labels are spread evenly.

    Args:
        y: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
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
    positive = y > 0.5
    labels = np.argsort(positive.sum(axis=0), kind="stable")  # from rare to frequent
    rarest = np.argmax(np.column_stack([positive[:, labels], np.ones(len(y), dtype=bool)]), axis=1)
    order = rng.permutation(len(y))
    order = order[np.lexsort((rarest[order], ~is_labelled[order]))]
    fold, fold_sizes = np.full(len(y), -1), np.zeros(folds)
    positives_per_fold = np.zeros((folds, len(labels)))
    for row in order:
        has_no_positive = rarest[row] == len(labels)
        counts = fold_sizes if has_no_positive else positives_per_fold[:, labels[rarest[row]]]
        best = np.lexsort((fold_sizes, counts))[0]  # an empty fold is first for every label
        fold[row] = best
        fold_sizes[best] += 1
        positives_per_fold[best] += positive[row]
    return fold
