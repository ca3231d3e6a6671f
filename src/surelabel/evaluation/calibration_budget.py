"""Estimate the number of labelled images that a calibrator needs (calibration budget)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.calibration import Calibrator, calibrator_for_images
from surelabel.errors import ConfigError, InputError
from surelabel.metrics import log_loss_of_logits, noise_floor
from surelabel.metrics.ece import ece
from surelabel.shapes import check_shapes

MIN_LABELLED_IMAGES = 100  # labelled images below which no estimate is possible
SMALLEST_SIZE = 25  # smallest budget if no sizes are given
ECE_MARGIN = 0.001  # a budget is sufficient if its ECE exceeds the lowest ECE by at most 0.001
ECE_SHARE = 0.1  # or by at most this fraction of the lowest ECE,
LOG_LOSS_SHARE = 0.01  # and its log loss exceeds the lowest one by at most this fraction
NOISE_FLOOR_RESAMPLES = 4  # resamples of the noise floor, in each repetition


@dataclass(frozen=True)
class CalibrationBudget:
    """Calibration error for k numbers of labelled images (budgets), in several repetitions.

    Attributes:
        sizes: Numbers of labelled images that the calibrator was fitted on, increasing, length k.
        ece: Pooled ECE on the test images, ``(k, repeats)``. If the labelled images have no
            positive or no negative target, the value is NaN.
        log_loss: Mean log loss on the test images, in nats, ``(k, repeats)``. The value
            is NaN where ``ece`` is NaN.
        noise_floor: Expected ECE of perfectly calibrated probabilities on the test images, for the
            largest budget. If no calibrator of this budget was fitted, the value is NaN.
        test_images: Number of test images in each repetition.
    """

    sizes: tuple[int, ...]
    ece: Array
    log_loss: Array
    noise_floor: float
    test_images: int

    @property
    def mean_ece(self) -> Array:
        """Return the mean of the defined ECEs of the repetitions, or NaN without any, ``(k,)``."""
        return _calibration_budget_means(self.ece)

    @property
    def mean_log_loss(self) -> Array:
        """Return the mean of the defined log losses, or NaN without any, ``(k,)``."""
        return _calibration_budget_means(self.log_loss)

    @property
    def sufficient_size(self) -> int | None:
        """Return the smallest sufficient budget, or None if no budget is sufficient.

        A budget is sufficient under two conditions. Its mean ECE exceeds the lowest mean ECE of all
        budgets by at most 0.001 or at most 10 %. Its mean log loss exceeds the lowest mean log loss
        by at most 1 %. The largest budget is never returned, because it cannot be compared with a
        larger budget.
        """
        errors, losses = self.mean_ece, self.mean_log_loss
        if np.isnan(errors).all():
            return None
        lowest_error, lowest_loss = np.nanmin(errors), np.nanmin(losses)
        for size, error, loss in zip(self.sizes[:-1], errors, losses, strict=False):
            is_close = error - lowest_error <= max(ECE_MARGIN, ECE_SHARE * lowest_error)
            if is_close and loss - lowest_loss <= LOG_LOSS_SHARE * lowest_loss:
                return size
        return None


def estimate_calibration_budget(
    make_calibrator: Callable[[], Calibrator],
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    vectors: npt.NDArray[np.floating] | None = None,
    sizes: Sequence[int] | None = None,
    repeats: int = 10,
    seed: int = 0,
) -> CalibrationBudget:
    """Fit calibrators on increasing numbers of labelled images and evaluate on other images.

        each repetition: shuffle the n labelled images, use n - max(sizes) images for testing,
        fit on the first m of the other images, for every m in sizes

    All budgets of a repetition are evaluated on the same test images, and the images of a smaller
    budget are a subset of the images of a larger budget. Therefore differences between budgets are
    caused only by the number of images.

    Args:
        make_calibrator: Function that returns an unfitted calibrator.
        logits: Log-odds or raw scores of n images and c labels, ``(n, c)``, before calibration.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except
            NaN are known.
        vectors: Vectors of the images, ``(n, d)``, for calibrators that use image vectors. If None,
            there are no vectors.
        sizes: Numbers of labelled images to fit on (budgets), each >= 1. If None, the budgets are
            25, 50, 100 … up to half of the images.
        repeats: Number of repetitions, >= 1.
        seed: Seed of the random order of the images.

    Returns:
        Calibration error of every budget in every repetition.

    Raises:
        InputError: If the shapes differ, if a known target is outside [0, 1], if fewer than 100
            images have a known target, or if the calibrator raises an InputError.
        ConfigError: If ``sizes`` is empty, if a size is below 1 or leaves no test image, if
            ``repeats`` is not a whole number of at least 1, or if the calibrator requires vectors
            and ``vectors`` is None.

    Source:
        None; ours. The budgets form a learning curve, averaged over random subsamples.

    Example:
        >>> from surelabel.calibration import Platt
        >>> random = np.random.default_rng(0)
        >>> x = random.normal(size=(400, 3))
        >>> y = random.random((400, 3)) < expit(2 * x - 1)
        >>> budget = estimate_calibration_budget(Platt, x, y)
        >>> budget.sizes, budget.test_images, budget.ece.shape
        ((25, 50, 100, 200), 200, (4, 10))
    """
    x = np.asarray(logits, dtype=np.float64)
    y, known = validate_target_arrays(targets, known)
    check_shapes(logits=(x, "n c"), targets=(y, "n c"), vectors=(vectors, "n d"))
    labelled_rows = np.flatnonzero(known.any(axis=1))
    sizes = _validate_calibration_budget_sizes(sizes, len(labelled_rows))
    if repeats != int(repeats) or repeats < 1:
        raise ConfigError(f"repeats must be a whole number of at least 1; got {repeats}.")
    errors = np.full((2, len(sizes), int(repeats)), np.nan)
    floors = []
    for repeat, rng in enumerate(np.random.default_rng(seed).spawn(int(repeats))):
        order = rng.permutation(labelled_rows)
        test = order[sizes[-1] :]
        for k, size in enumerate(sizes):
            train = order[:size]
            if not _can_fit_calibration_budget(y[train], known[train]):
                continue
            calibrator = calibrator_for_images(make_calibrator(), vectors, train)
            calibrator.fit(x[train], y[train], known[train])
            z = calibrator_for_images(calibrator, vectors, test).logits(x[test])
            p = expit(z)
            errors[0, k, repeat] = ece(p, y[test], known[test])
            errors[1, k, repeat] = log_loss_of_logits(z, y[test], known[test])
            if size == sizes[-1]:
                resamples = NOISE_FLOOR_RESAMPLES
                floors.append(noise_floor(ece, p, known[test], resamples=resamples, seed=repeat))
    floor = float(np.mean(floors)) if floors else float("nan")
    test_images = len(labelled_rows) - sizes[-1]
    return CalibrationBudget(sizes, errors[0], errors[1], floor, test_images)


def _validate_calibration_budget_sizes(sizes: Sequence[int] | None, n: int) -> tuple[int, ...]:
    """Return the budgets in increasing order, or the default budgets if ``sizes`` is None."""
    if n < MIN_LABELLED_IMAGES:
        raise InputError(
            f"The calibration budget requires at least {MIN_LABELLED_IMAGES} annotated images; "
            f"got {n}. Annotate more images, or omit the calibration budget."
        )
    if sizes is None:
        doubled = SMALLEST_SIZE * 2 ** np.arange(np.log2(n / 2 / SMALLEST_SIZE) + 1e-9)
        return tuple(int(size) for size in doubled)
    ascending = tuple(sorted({int(size) for size in sizes}))
    if not ascending or ascending[0] < 1 or ascending[-1] >= n:
        raise ConfigError(
            f"sizes must contain whole numbers from 1 to {n - 1}; got {list(sizes)}. At least one "
            f"of the {n} annotated images must remain as a test image."
        )
    return ascending


def _can_fit_calibration_budget(targets: Array, known: Flags) -> bool:
    """Return whether the known targets are neither all 0 nor all 1."""
    known_targets = targets[known]
    return bool((known_targets > 0).any() and (known_targets < 1).any())


def _calibration_budget_means(values: Array) -> Array:
    """Return the mean of the defined values of each row, or NaN if a row has no defined value."""
    is_defined = ~np.isnan(values)
    total, count = np.where(is_defined, values, 0).sum(axis=1), is_defined.sum(axis=1)
    means: Array = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return means
