"""Metrics on many resamples of the images at once, with one row of image weights per resample.

All metrics of this file are functions of sums over images, so resampling is a matrix product. If
all weights are 1, the metrics equal those of ``surelabel.metrics``.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.records import Array, validate_record_targets

BINS = 15
INTERVAL_QUANTILES = (0.025, 0.975)


def bench_resampling_weights(count: int, *, resamples: int, seed: int = 0) -> Array:
    """Return how often each image occurs in each resample, ``(1 + resamples, n)``.

    In the first row, each image occurs once. The other rows are sampled with replacement.

    Args:
        count: Number of images, n.
        resamples: Number of resamples.
        seed: Seed of the resampling.
    """
    generator = np.random.default_rng(seed)
    sampled = generator.multinomial(count, np.full(count, 1 / count), size=resamples)
    return np.vstack([np.ones((1, count)), sampled])


class BenchResampling:
    """Metrics on resamples of the images; all compared rows use the same resamples.

    Args:
        targets: Targets in [0, 1], NaN if unknown, ``(n, c)``.
        known: True for known targets, boolean, ``(n, c)``. If None, all targets except NaN are
            known.
        resamples: Number of resamples, in addition to the images themselves.
        seed: Seed of the resampling.
    """

    def __init__(
        self,
        targets: npt.ArrayLike,
        known: npt.ArrayLike | None = None,
        *,
        resamples: int = 1000,
        seed: int = 0,
    ):
        self._targets, self._known = validate_record_targets(targets, known)
        self._weights = bench_resampling_weights(len(self._targets), resamples=resamples, seed=seed)
        self._n_decisions = self._weights @ self._known.sum(axis=1, dtype=float)
        self._prevalence_error = self._squared_error_of_prevalences()

    def metrics(self, logits: Array) -> dict[str, Array]:
        """Return the values of each metric, ``(1 + resamples,)``: first on the images, then on each
        resample.

        Args:
            logits: Log-odds, ``(n, c)``.
        """
        p, y = expit(logits), self._targets
        squared_errors = ((p - y) ** 2).sum(axis=1, where=self._known)
        log_losses = (np.logaddexp(0, logits) - y * logits).sum(axis=1, where=self._known)
        squared_error, log_loss = self._weights @ squared_errors, self._weights @ log_losses
        counts, confidence, accuracy = np.split(self._weights @ self._bin_sums(p), 3, axis=1)
        gaps = np.abs(accuracy - confidence)
        return {
            "brier_skill": 1 - divide_or_nan(squared_error, self._prevalence_error),
            "log_loss": divide_or_nan(log_loss, self._n_decisions),
            "ece": divide_or_nan(gaps.sum(axis=1), self._n_decisions),
            "ace": divide_or_nan(
                np.nansum(divide_or_nan(gaps, counts), axis=1), (counts > 0).sum(axis=1)
            ),
        }

    def _bin_sums(self, p: Array) -> Array:
        """Return the counts, probabilities and targets per image and bin, (n, 3 · BINS)."""
        n, known = len(p), self._known
        bins = np.searchsorted(np.arange(1, BINS) / BINS, p, side="right")
        cells = (bins + BINS * np.arange(n)[:, None])[known]
        sums = [
            np.bincount(cells, weights, n * BINS).reshape(n, BINS)
            for weights in (None, p[known], self._targets[known])
        ]
        return np.hstack(sums)

    def _squared_error_of_prevalences(self) -> Array:
        """Return the squared error of predicting the prevalence of each label, by resample."""
        y = np.where(self._known, self._targets, 0)
        totals, squares = self._weights @ y, self._weights @ y**2
        errors = squares - totals * divide_or_nan(totals, self._weights @ self._known.astype(float))
        errors[~(errors > 1e-12 * squares)] = 0  # rounding error, if all targets are equal
        return np.asarray(errors.sum(axis=1))


def bench_resampling_difference_intervals(
    first: Mapping[str, Array], second: Mapping[str, Array]
) -> dict[str, ConfidenceInterval]:
    """Return the 95 % interval of ``first`` minus ``second`` for each metric.

    Args:
        first: Values by metric, from `BenchResampling.metrics`, ``(1 + resamples,)`` each.
        second: Values by metric on the same resamples, ``(1 + resamples,)`` each.

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979.

    Differs:
        The resamples are shifted so that the mean of the resamples is the difference itself, as in
        ``metrics.paired_bootstrap_interval``, because binned errors grow in every resample.
    """
    return {name: _centred_bench_resampling_interval(first[name] - second[name]) for name in first}


def _centred_bench_resampling_interval(values: Array) -> ConfidenceInterval:
    """Return the first value with the interval of the other values, centred on the first value."""
    value, resampled = float(values[0]), values[1:]
    defined = resampled[~np.isnan(resampled)]
    if not defined.size:
        return ConfidenceInterval(value, float("nan"), float("nan"), resampled.size)
    low, high = np.quantile(defined - defined.mean(), INTERVAL_QUANTILES) + value
    return ConfidenceInterval(value, float(low), float(high), int(resampled.size - defined.size))
