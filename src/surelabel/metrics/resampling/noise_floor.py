"""Compute the noise floor: the expected value of a metric for a perfectly calibrated model."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_metric_whole_number

FloatOrArray = TypeVar("FloatOrArray", float, Array)


def noise_floor(
    metric: Callable[..., FloatOrArray],
    probabilities: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    resamples: int = 20,
    seed: int = 0,
) -> FloatOrArray:
    """Return the mean of a metric over sets of targets that are sampled from the probabilities.

        y' ~ Bernoulli(p), ``resamples`` times

    where p is the probability of a label and y' is the sampled target. If a calibration error is
    close to the noise floor, the error cannot be distinguished from 0 with this number of images.

    Args:
        metric: Metric of the table ``METRICS``, or a function with the same arguments.
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets are known.
        resamples: Number of sampled target matrices, >= 1.
        seed: Seed of the sampling.

    Returns:
        Mean of the metric. If the metric returns one number per class, the mean has the shape
        ``(c,)``, otherwise it is one number. If the metric is NaN for one set of targets, the mean
        is NaN.

    Raises:
        InputError: If a probability is NaN or outside [0, 1], or the metric raises an InputError.
        ConfigError: If ``resamples`` is not a whole number >= 1.

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
    resamples = validate_metric_whole_number("resamples", resamples)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise InputError(
            f"noise_floor needs probabilities in [0, 1] without NaN; got values from {p.min()} to "
            f"{p.max()}. Apply the link and the sigmoid to the scores."
        )
    # spawned streams are independent of default_rng(seed), which the caller may have used
    streams = np.random.default_rng(seed).spawn(resamples)
    metric_values = [metric(p, stream.random(p.shape) < p, known) for stream in streams]
    mean: FloatOrArray = np.mean(metric_values, axis=0)
    return mean
