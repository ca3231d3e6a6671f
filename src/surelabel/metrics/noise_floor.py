"""What a metric would say of a perfectly calibrated model of this size."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.whole import whole
from surelabel.records import Array

Value = TypeVar("Value", float, Array)


def noise_floor(
    metric: Callable[..., Value],
    probabilities: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    draws: int = 20,
    seed: int = 0,
) -> Value:
    """Mean of a metric over targets drawn from the probabilities themselves.

        y' ~ Bernoulli(p), ``draws`` times

    A calibration error near this number cannot be told from none with this much data.

    Args:
        metric: An entry of ``METRICS`` or ``PER_CLASS``, its settings fixed.
        probabilities: In [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        draws: How many sets of targets, >= 1.
        seed: Of the draws.

    Returns:
        What the metric returns: a number, or ``(c,)``.

    Raises:
        InputError: a probability is NaN or outside [0, 1], or what the metric raises.
        ConfigError: ``draws`` is not a whole number of at least 1.

    Source:
        Consistency resampling: Bröcker and Smith, Increasing the Reliability of Reliability
        Diagrams, Weather and Forecasting, 2007.

    Example:
        >>> from surelabel.metrics import ece
        >>> float(noise_floor(ece, [[0.0, 1.0]]).round(4))
        0.0
        >>> float(noise_floor(ece, [[0.5]] * 100).round(2))
        0.04
    """
    draws = whole("draws", draws)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise InputError(
            f"Targets are drawn from probabilities in [0, 1] without NaN. Got {p.min()} to "
            f"{p.max()}; scores become probabilities by their link."
        )
    # streams of their own: default_rng(seed) itself may have made the probabilities
    streams = np.random.default_rng(seed).spawn(draws)
    floors = [metric(p, stream.random(p.shape) < p, known) for stream in streams]
    mean: Value = np.mean(floors, axis=0)
    return mean
