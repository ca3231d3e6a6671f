"""How much a number would move with other pictures, or with other seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.whole import whole
from surelabel.records import Array, checked_targets
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class Interval:
    """A number and where it may as well have been.

    Attributes:
        value: Of the data themselves.
        low: Lower end, NaN where nothing can be said.
        high: Upper end, NaN where nothing can be said.
        undefined: Resamples of which the metric could say nothing; they are left out.
    """

    value: float
    low: float
    high: float
    undefined: int = 0


def bootstrap(
    metric: Callable[..., float],
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval of a metric over other pictures like these: whole pictures drawn with replacement.

    The labels of a picture depend on each other, so pictures are drawn, never single decisions. It
    costs ``draws`` times the metric: 200 of ``ece`` on 10,000 × 80 take some seconds.

    Args:
        metric: An entry of ``METRICS``, its settings fixed.
        probabilities: What the metric takes, ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        draws: How many resamples, >= 2; 1,000 for an end that shall stand still.
        level: Share of resamples between the ends, in (0, 1).
        seed: Of the draws.

    Returns:
        The value and its ends; both ends NaN with fewer than two pictures.

    Raises:
        InputError: what the metric raises.
        ConfigError: ``draws`` or ``level`` is out of range.

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979;
        percentiles.

    Differs:
        The resamples are shifted so that their mean is the value. For means over pictures that
        changes next to nothing. Binned errors are larger in every resample than in the data, since
        repeated pictures are noise twice, and percentiles alone would leave out the value itself.
        The interval says how the number moves; how much of it is chance says ``noise_floor``.

    Example:
        >>> from surelabel.metrics import brier
        >>> found = bootstrap(brier, [[0.9], [0.2], [0.6]], [[1], [0], [0]], draws=500)
        >>> round(found.value, 4), found.low < found.value < found.high
        (0.1367, True)
    """
    y, known = checked_targets(targets, known)
    p = np.asarray(probabilities, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), targets=(y, "n c"))
    drawn = [metric(p[r], y[r], known[r]) for r in _resamples(len(p), draws, seed)]
    return _interval(metric(p, y, known), np.array(drawn), level)


def paired_bootstrap(
    metric: Callable[..., float],
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval of the difference of two models, first - second, on the same drawn pictures.

    Both meet the same easy and hard pictures, so this is far narrower than two intervals side by
    side. Costs twice ``bootstrap``.

    Args:
        metric: As for ``bootstrap``.
        first: What the metric takes, of one model, ``(n, c)``.
        second: The same of the other, ``(n, c)``.
        targets: As for ``bootstrap``.
        known: As for ``bootstrap``.
        draws: As for ``bootstrap``.
        level: As for ``bootstrap``.
        seed: As for ``bootstrap``.

    Returns:
        The difference and its ends; a difference is told from none where 0 lies outside.

    Raises:
        InputError: shapes differ, or what the metric raises.
        ConfigError: as for ``bootstrap``.

    Source:
        As ``bootstrap``.

    Differs:
        As ``bootstrap``.

    Example:
        >>> from surelabel.metrics import brier
        >>> better, worse, truth = [[0.9], [0.1]] * 20, [[0.8], [0.2]] * 20, [[1], [0]] * 20
        >>> paired_bootstrap(brier, better, worse, truth).high < 0
        True
    """
    y, known = checked_targets(targets, known)
    p, q = (np.asarray(given, dtype=np.float64) for given in (first, second))
    check_shapes(first=(p, "n c"), second=(q, "n c"), targets=(y, "n c"))
    drawn = [
        metric(p[r], y[r], known[r]) - metric(q[r], y[r], known[r])
        for r in _resamples(len(p), draws, seed)
    ]
    return _interval(metric(p, y, known) - metric(q, y, known), np.array(drawn), level)


def paired_over_seeds(differences: Sequence[float] | Array, *, level: float = 0.95) -> Interval:
    """Interval of the mean difference of two ways of training, each seed giving one difference.

        mean ± t · standard deviation / √s

    Args:
        differences: One a seed, finite, ``(s,)``.
        level: Of confidence, in (0, 1).

    Returns:
        Their mean and its ends; both ends NaN with fewer than two seeds.

    Raises:
        InputError: there is none, or one is not finite.
        ConfigError: ``level`` is out of range.

    Source:
        Student, The Probable Error of a Mean, Biometrika, 1908: the paired t interval.

    Example:
        >>> found = paired_over_seeds([0.1, 0.2, 0.3])
        >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
        (0.2, -0.0484, 0.4484)
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(
            f"differences must be one finite number a seed, and one at least. Got {differences}."
        )
    tail = _tail(level)
    if len(values) < 2:
        return Interval(float(values.mean()), float("nan"), float("nan"))
    reach = student.ppf(1 - tail, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    mean = values.mean()
    return Interval(float(mean), float(mean - reach), float(mean + reach))


def _resamples(count: int, draws: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Rows drawn with replacement; none from fewer than two."""
    draws = whole("draws", draws, least=2)
    # streams of their own: default_rng(seed) itself may have made the data
    streams = np.random.default_rng(seed).spawn(draws if count > 1 else 0)
    return (stream.integers(count, size=count) for stream in streams)


def _interval(value: float, drawn: Array, level: float) -> Interval:
    tail = _tail(level)
    defined = drawn[~np.isnan(drawn)]
    if not defined.size:
        return Interval(value, float("nan"), float("nan"), drawn.size)
    low, high = np.quantile(defined - defined.mean(), [tail, 1 - tail]) + value
    return Interval(value, float(low), float(high), int(drawn.size - defined.size))


def _tail(level: float) -> float:
    """Share left out at each end."""
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1. Got {level}.")
    return (1 - level) / 2
