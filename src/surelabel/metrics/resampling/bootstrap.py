"""Compute confidence intervals of metrics over images (bootstrap) and over seeds (t interval)."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from surelabel.arrays import Array, validate_target_arrays
from surelabel.errors import ConfigError, InputError
from surelabel.metrics.arrays.input_validation import validate_metric_whole_number
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class ConfidenceInterval:
    """Value of a metric with its confidence interval.

    Attributes:
        value: Value on the original data, without resampling.
        low: Lower end of the interval, or NaN if the interval cannot be computed.
        high: Upper end of the interval, or NaN if the interval cannot be computed.
        undefined: Number of resamples for which the metric is NaN. Such resamples are left out.
    """

    value: float
    low: float
    high: float
    undefined: int = 0


def bootstrap_interval(
    metric: Callable[..., float],
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> ConfidenceInterval:
    """Compute the bootstrap interval of a metric by resampling images with replacement.

    The labels of an image are dependent, so whole images are resampled. The computing time is
    ``resamples`` times the computing time of the metric. For example, 200 resamples of ``ece`` for
    10,000 images and 80 labels take some seconds.

    Args:
        metric: Metric of the table ``POOLED``, or a function with the same arguments.
        probabilities: Probabilities or scores of n images and c classes, as the metric requires,
            ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        resamples: Number of resamples, >= 2. A stable interval needs about 1,000 resamples.
        level: Confidence level, in (0, 1).
        seed: Seed of the resampling.

    Returns:
        Value of the metric and confidence interval. If there are fewer than two images, or the
        metric is NaN for each resample, the ends of the interval are NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a known target is outside
            [0, 1], ``known`` is not Boolean, or the metric raises an InputError.
        ConfigError: If ``resamples`` is not a whole number >= 2, or ``level`` is not in (0, 1).

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979;
        percentile interval.

    Differs:
        The resampled values are shifted so that their mean is the value on the original data. If
        the metric is a mean over images, the shift is negligible. Binned calibration errors are
        usually larger on a resample, because repeated images add noise. Without the shift, the
        interval might exclude the value on the original data. The interval measures the variation
        of the metric, not its bias: see ``noise_floor``.

    Example:
        >>> from surelabel.metrics import brier
        >>> p, y = [[0.9], [0.2], [0.6]], [[1], [0], [0]]
        >>> interval = bootstrap_interval(brier, p, y, resamples=500)
        >>> round(interval.value, 4), interval.low < interval.value < interval.high
        (0.1367, True)
    """
    y, known = validate_target_arrays(targets, known)
    p = np.asarray(probabilities, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), targets=(y, "n c"))
    resampled = [
        metric(p[rows], y[rows], known[rows])
        for rows in bootstrap_row_indices(len(p), resamples, seed)
    ]
    return shifted_bootstrap_interval(metric(p, y, known), np.array(resampled), level)


def paired_bootstrap_interval(
    metric: Callable[..., float],
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> ConfidenceInterval:
    """Compute the bootstrap interval of the difference in a metric between two models.

    The difference is the metric of the first model minus the metric of the second model. Both
    models are evaluated on the same resampled images, so the interval of the difference is usually
    much narrower than two separate intervals suggest. The computing time is twice that of
    ``bootstrap_interval``.

    Args:
        metric: Metric of the table ``POOLED``, or a function with the same arguments.
        first: Probabilities or scores of the first model, n images and c classes, ``(n, c)``.
        second: Probabilities or scores of the second model, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        resamples: Number of resamples, >= 2. A stable interval needs about 1,000 resamples.
        level: Confidence level, in (0, 1).
        seed: Seed of the resampling.

    Returns:
        Difference in the metric and confidence interval, with NaN as in ``bootstrap_interval``. The
        difference is significant at the confidence level if the interval excludes 0.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a known target is outside
            [0, 1], ``known`` is not Boolean, or the metric raises an InputError.
        ConfigError: If ``resamples`` is not a whole number >= 2, or ``level`` is not in (0, 1).

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979;
        percentile interval.

    Differs:
        The resampled differences are shifted as in ``bootstrap_interval``.

    Example:
        >>> from surelabel.metrics import brier
        >>> better, worse, targets = [[0.9], [0.1]] * 20, [[0.8], [0.2]] * 20, [[1], [0]] * 20
        >>> paired_bootstrap_interval(brier, better, worse, targets).high < 0
        True
    """
    y, known = validate_target_arrays(targets, known)
    p, q = (np.asarray(array, dtype=np.float64) for array in (first, second))
    check_shapes(first=(p, "n c"), second=(q, "n c"), targets=(y, "n c"))
    resampled = [
        metric(p[rows], y[rows], known[rows]) - metric(q[rows], y[rows], known[rows])
        for rows in bootstrap_row_indices(len(p), resamples, seed)
    ]
    difference = metric(p, y, known) - metric(q, y, known)
    return shifted_bootstrap_interval(difference, np.array(resampled), level)


def paired_t_interval(
    differences: Sequence[float] | Array, *, level: float = 0.95
) -> ConfidenceInterval:
    """Compute the t interval of the mean difference between two training methods over seeds.

        mean ± t · standard deviation / √s

    where mean and standard deviation are those of the differences and s is the number of seeds. The
    factor t is the (1 + level) / 2 quantile of Student's t distribution with s - 1 degrees of
    freedom.

    Args:
        differences: Finite difference between the two methods for each seed, ``(s,)``.
        level: Confidence level, in (0, 1).

    Returns:
        Mean difference and confidence interval. If there is a single seed, the ends of the interval
        are NaN.

    Raises:
        InputError: If ``differences`` is empty or contains a value that is not finite.
        ConfigError: If ``level`` is not in (0, 1).

    Source:
        Student, The Probable Error of a Mean, Biometrika, 1908: the paired t interval.

    Example:
        >>> interval = paired_t_interval([0.1, 0.2, 0.3])
        >>> round(interval.value, 4), round(interval.low, 4), round(interval.high, 4)
        (0.2, -0.0484, 0.4484)
    """
    array = np.asarray(differences, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise InputError(
            f"differences must contain one finite number per seed, for at least one seed; got "
            f"{differences}."
        )
    tail = _bootstrap_tail_probability(level)
    if len(array) < 2:
        return ConfidenceInterval(float(array.mean()), float("nan"), float("nan"))
    half_width = stdtrit(len(array) - 1, 1 - tail) * array.std(ddof=1) / np.sqrt(len(array))
    mean = array.mean()
    return ConfidenceInterval(float(mean), float(mean - half_width), float(mean + half_width))


def bootstrap_row_indices(
    n_images: int, resamples: int, seed: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield row indices sampled with replacement, or nothing if there are fewer than two images.

    Args:
        n_images: Number of images, which is the number of indices of each resample.
        resamples: Number of resamples, >= 2.
        seed: Seed of the resampling.

    Raises:
        ConfigError: If ``resamples`` is not a whole number >= 2.
    """
    resamples = validate_metric_whole_number("resamples", resamples, minimum=2)
    # spawned streams are independent of default_rng(seed), which the caller may have used
    streams = np.random.default_rng(seed).spawn(resamples if n_images > 1 else 0)
    return (stream.integers(n_images, size=n_images) for stream in streams)


def shifted_bootstrap_interval(
    value: float,
    resampled: Array,
    level: float = 0.95,
    *,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> ConfidenceInterval:
    """Return the percentile interval of resampled values, shifted so that their mean is ``value``.

    If all resampled values are NaN, the ends of the interval are NaN.

    Args:
        value: Value on the original data.
        resampled: Value on each resample, NaN if undefined, ``(r,)``.
        level: Confidence level, in (0, 1).
        within: Lowest and highest possible value, to which the shifted interval is limited.

    Raises:
        ConfigError: If ``level`` is not in (0, 1).
    """
    tail = _bootstrap_tail_probability(level)
    defined = resampled[~np.isnan(resampled)]
    if not defined.size:
        return ConfidenceInterval(value, float("nan"), float("nan"), resampled.size)
    low, high = np.quantile(defined - defined.mean(), [tail, 1 - tail]) + value
    low, high = np.clip([low, high], *within)
    n_undefined = int(resampled.size - defined.size)
    return ConfidenceInterval(value, float(low), float(high), n_undefined)


def _bootstrap_tail_probability(level: float) -> float:
    """Return the probability of each tail outside the interval."""
    if not 0 < level < 1:
        raise ConfigError(f"level must be between 0 and 1; got {level}. Use 0.95 for 95 %.")
    return (1 - level) / 2
