"""Confidence intervals of metrics over images (bootstrap) and over random seeds (t interval)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.arrays.input_validation import validate_whole_number
from surelabel.records import Array, validate_targets
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class ConfidenceInterval:
    """A value and its confidence interval.

    Attributes:
        value: Value on the data themselves.
        low: Lower end of the interval, NaN if it cannot be computed.
        high: Upper end of the interval, NaN if it cannot be computed.
        undefined: Number of resamples where the metric is NaN; they are left out.
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

    The labels of an image are dependent, so whole images are resampled. The cost is ``resamples``
    times that of the metric: 200 resamples of ``ece`` on 10,000 × 80 labels take some seconds.

    Args:
        metric: Entry of ``POOLED``, or a function with the same arguments.
        probabilities: Probabilities or scores, as the metric requires, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        resamples: Number of resamples, >= 2. About 1,000 give stable ends.
        level: Confidence level, in (0, 1).
        seed: Seed of the resampling.

    Returns:
        Value and interval; the ends are NaN for fewer than two images.

    Raises:
        InputError: If the shapes differ, or the metric raises this error.
        ConfigError: If ``resamples`` or ``level`` is out of range.

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979;
        percentile interval.

    Differs:
        The resampled values are shifted so that their mean is the value. For means over images
        the shift is negligible. Binned errors are larger in each resample than in the data,
        because repeated images add noise, and plain percentiles might exclude the value itself.
        The interval measures the variation of the metric, not its bias: see ``noise_floor``.

    Example:
        >>> from surelabel.metrics import brier
        >>> p, y = [[0.9], [0.2], [0.6]], [[1], [0], [0]]
        >>> interval = bootstrap_interval(brier, p, y, resamples=500)
        >>> round(interval.value, 4), interval.low < interval.value < interval.high
        (0.1367, True)
    """
    y, known = validate_targets(targets, known)
    p = np.asarray(probabilities, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), targets=(y, "n c"))
    resampled = [
        metric(p[rows], y[rows], known[rows]) for rows in _resampled_rows(len(p), resamples, seed)
    ]
    return _shifted_percentile_interval(metric(p, y, known), np.array(resampled), level)


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
    """Compute the bootstrap interval of the difference of two models, first - second.

    Both models are evaluated on the same resampled images, so the interval is much narrower than
    two separate intervals suggest. It costs twice ``bootstrap_interval``.

    Args:
        metric: Entry of ``POOLED``, or a function with the same arguments.
        first: Probabilities or scores of the first model, ``(n, c)``.
        second: Probabilities or scores of the second model, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        resamples: Number of resamples, >= 2. About 1,000 give stable ends.
        level: Confidence level, in (0, 1).
        seed: Seed of the resampling.

    Returns:
        Difference and interval; the difference is significant if the interval excludes 0.

    Raises:
        InputError: If the shapes differ, or the metric raises this error.
        ConfigError: If ``resamples`` or ``level`` is out of range.

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
    y, known = validate_targets(targets, known)
    p, q = (np.asarray(array, dtype=np.float64) for array in (first, second))
    check_shapes(first=(p, "n c"), second=(q, "n c"), targets=(y, "n c"))
    resampled = [
        metric(p[rows], y[rows], known[rows]) - metric(q[rows], y[rows], known[rows])
        for rows in _resampled_rows(len(p), resamples, seed)
    ]
    difference = metric(p, y, known) - metric(q, y, known)
    return _shifted_percentile_interval(difference, np.array(resampled), level)


def paired_t_interval(
    differences: Sequence[float] | Array, *, level: float = 0.95
) -> ConfidenceInterval:
    """Compute the t interval of the mean difference of two training methods over seeds.

        mean ± t · standard deviation / √s

    Args:
        differences: Difference of the two methods for each seed, finite, ``(s,)``.
        level: Confidence level, in (0, 1).

    Returns:
        Mean difference and interval; the ends are NaN for a single seed.

    Raises:
        InputError: If there is no difference, or one is not finite.
        ConfigError: If ``level`` is out of range.

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
            f"differences must be one finite number per seed, at least one; got {differences}."
        )
    tail = _tail_probability(level)
    if len(array) < 2:
        return ConfidenceInterval(float(array.mean()), float("nan"), float("nan"))
    half_width = student.ppf(1 - tail, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    mean = array.mean()
    return ConfidenceInterval(float(mean), float(mean - half_width), float(mean + half_width))


def _resampled_rows(n_images: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield row indices sampled with replacement; nothing for fewer than two images."""
    resamples = validate_whole_number("resamples", resamples, minimum=2)
    # spawned streams: the caller may have sampled the data with default_rng(seed)
    streams = np.random.default_rng(seed).spawn(resamples if n_images > 1 else 0)
    return (stream.integers(n_images, size=n_images) for stream in streams)


def _shifted_percentile_interval(
    value: float, resampled: Array, level: float
) -> ConfidenceInterval:
    """Return the percentile interval of the resampled values, shifted to the mean ``value``."""
    tail = _tail_probability(level)
    defined = resampled[~np.isnan(resampled)]
    if not defined.size:
        return ConfidenceInterval(value, float("nan"), float("nan"), resampled.size)
    low, high = np.quantile(defined - defined.mean(), [tail, 1 - tail]) + value
    n_undefined = int(resampled.size - defined.size)
    return ConfidenceInterval(value, float(low), float(high), n_undefined)


def _tail_probability(level: float) -> float:
    """Return the probability outside the interval at each end."""
    if not 0 < level < 1:
        raise ConfigError(f"level must be between 0 and 1; got {level}. Use 0.95 for 95 %.")
    return (1 - level) / 2
