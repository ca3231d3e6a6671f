"""Metrics over many resamples of pictures at once: each resample is one row of weights.

All metrics here are functions of sums over pictures, so resampling them is a matrix product. They
equal those of ``metrics`` where every picture counts once.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.metrics import Interval
from surelabel.metrics.ratio import ratio
from surelabel.records import Array, checked_targets

BINS = 15
ENDS = (0.025, 0.975)


def resampled(count: int, *, draws: int, seed: int = 0) -> Array:
    """How often each picture counts: once, then as drawn with replacement, ``(1 + draws, n)``."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=draws)
    return np.vstack([np.ones((1, count)), drawn])


class Resamples:
    """Pictures drawn with replacement, the same for all rows that are compared on them.

    Args:
        targets: In [0, 1], NaN where unknown, ``(n, c)``.
        known: What is known of them; all when left out.
        draws: How many resamples; before them stand the pictures themselves, each once.
        seed: Of the draws.
    """

    def __init__(
        self,
        targets: npt.ArrayLike,
        known: npt.ArrayLike | None = None,
        *,
        draws: int = 1000,
        seed: int = 0,
    ):
        self._targets, self._known = checked_targets(targets, known)
        self._weights = resampled(len(self._targets), draws=draws, seed=seed)
        self._decisions = self._weights @ self._known.sum(axis=1, dtype=float)
        self._reference = self._error_of_prevalences()

    def metrics(self, logits: Array) -> dict[str, Array]:
        """Metric → its value for the pictures themselves and each resample, ``(1 + draws,)``."""
        p, y = expit(logits), self._targets
        squared = ((p - y) ** 2).sum(axis=1, where=self._known)
        surprise = (np.logaddexp(0, logits) - y * logits).sum(axis=1, where=self._known)
        squared, surprise = self._weights @ squared, self._weights @ surprise
        counts, confidence, accuracy = np.split(self._weights @ self._binned(p), 3, axis=1)
        gaps = np.abs(accuracy - confidence)
        return {
            "brier_skill": 1 - ratio(squared, self._reference),
            "log_loss": ratio(surprise, self._decisions),
            "ece": ratio(gaps.sum(axis=1), self._decisions),
            "ace": ratio(np.nansum(ratio(gaps, counts), axis=1), (counts > 0).sum(axis=1)),
        }

    def _binned(self, p: Array) -> Array:
        """Counts, probabilities and targets that each picture adds to each bin, (n, 3 · BINS)."""
        n, known = len(p), self._known
        place = np.searchsorted(np.arange(1, BINS) / BINS, p, side="right")
        place = (place + BINS * np.arange(n)[:, None])[known]
        sums = [
            np.bincount(place, weights, n * BINS).reshape(n, BINS)
            for weights in (None, p[known], self._targets[known])
        ]
        return np.hstack(sums)

    def _error_of_prevalences(self) -> Array:
        """Squared error of those who only know how common each label is, by resample."""
        y = np.where(self._known, self._targets, 0)
        total, squares = self._weights @ y, self._weights @ y**2
        error = squares - total * ratio(total, self._weights @ self._known.astype(float))
        error[~(error > 1e-12 * squares)] = 0  # rounding, where all targets are the same
        return np.asarray(error.sum(axis=1))


def differences(first: Mapping[str, Array], second: Mapping[str, Array]) -> dict[str, Interval]:
    """Metric → 95 % interval of ``first`` minus ``second``, both of the same ``Resamples``.

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979.

    Differs:
        The resamples are shifted so that their mean is the difference itself, as those of
        ``metrics.paired_bootstrap`` are, because binned errors grow in every resample.
    """
    return {name: _interval(first[name] - second[name]) for name in first}


def _interval(found: Array) -> Interval:
    value, drawn = float(found[0]), found[1:]
    defined = drawn[~np.isnan(drawn)]
    if not defined.size:
        return Interval(value, float("nan"), float("nan"), drawn.size)
    low, high = np.quantile(defined - defined.mean(), ENDS) + value
    return Interval(value, float(low), float(high), int(drawn.size - defined.size))
