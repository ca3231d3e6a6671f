"""Cross-fitting: out-of-fold calibrated logits of the images that a calibrator is fitted on."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from surelabel.calibration.fitting.input_validation import validate_calibrator_input
from surelabel.calibration.interface import Calibrator
from surelabel.errors import ConfigError, InputError
from surelabel.records import Array, Flags, validate_record_targets
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

    The images are split into folds that are stratified by label. Each fold is calibrated by a
    calibrator that was fitted on all other folds. Metrics of the result are unbiased estimates for
    the out-of-fold calibrators, and slightly pessimistic for the calibrator fitted on all images.

    Args:
        make_calibrator: Function that returns an unfitted calibrator, such as an entry of
            ``CALIBRATORS``.
        logits: Log-odds or raw scores, ``(n, c)``, finite.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets are known.
        folds: Number of folds, >= 2 and at most the number of images with a known label.
        seed: Seed of the random order in which images are assigned to folds.

    Returns:
        Calibrated log-odds in [-40, 40], ``(n, c)``, also for images without a known label.

    Raises:
        InputError: If a value is out of range, if there are fewer images with a known label than
            folds, or if the training images of a fold have no known positive or no known negative
            target.
        ConfigError: If ``folds`` is not a whole number of at least 2.

    Source:
        Stacked or cross-validated calibration: Platt, Probabilistic Outputs for Support Vector
        Machines, 1999; folds as in Sechidis, Tsoumakas and Vlahavas, On the
        Stratification of Multi-label Data, ECML PKDD 2011.

    Differs:
        As in the source, images with the rarest label are assigned first, each to the fold with the
        fewest images of that label. Here the labels are sorted by frequency only once, not after
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
    y, known = validate_record_targets(targets, known)
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
    """Return the fold of each image, ``(n,)``, stratified so that rare labels are spread evenly.

    Args:
        y: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.
        folds: Number of folds.
        rng: Random generator that shuffles the images before the assignment.

    Raises:
        InputError: If there are fewer images with a known label than folds.
        ConfigError: If ``folds`` is not a whole number of at least 2.
    """
    if not float(folds).is_integer() or folds < 2:
        raise ConfigError(f"folds must be a whole number of at least 2; got {folds}.")
    is_labelled = known.sum(axis=1) > 0
    if is_labelled.sum() < folds:
        raise InputError(
            f"folds must be at most the number of images with a known label; got {folds} folds "
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
