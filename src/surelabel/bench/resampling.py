"""Compute metrics on bootstrap resamples of the images, for all resamples at once.

All metrics of this file are functions of sums over images. A matrix contains the weight of each
image in each resample, so one matrix product computes the sums of all resamples. If all weights are
1, the metrics equal those of ``surelabel.metrics``.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.arrays.nan_division import divide_or_nan

BINS = 15
INTERVAL_QUANTILES = (0.025, 0.975)


def bench_resampling_weights(count: int, *, resamples: int, seed: int = 0) -> Array:
    """Return how often each image occurs in each resample, ``(1 + resamples, n)``.

    The first row represents the original images: each image occurs once. Each other row represents
    n images that are sampled with replacement.

    Args:
        count: Number of images, n.
        resamples: Number of resamples.
        seed: Seed of the resampling.
    """
    generator = np.random.default_rng(seed)
    sampled = generator.multinomial(count, np.full(count, 1 / count), size=resamples)
    return np.vstack([np.ones((1, count)), sampled])


class BenchResampling:
    """Metrics of log-odds on the original images and on bootstrap resamples of the images.

    The resamples depend only on the number of images and on the seed, so different log-odds are
    compared on the same resamples.

    Args:
        targets: Targets of n images and c labels in [0, 1], NaN if unknown, ``(n, c)``.
        known: True for known targets, boolean, ``(n, c)``. If None, all targets except NaN are
            known.
        resamples: Number of resamples, not counting the original images.
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
        self._targets, self._known = validate_target_arrays(targets, known)
        self._weights = bench_resampling_weights(len(self._targets), resamples=resamples, seed=seed)
        self._n_decisions = self._weights @ self._known.sum(axis=1, dtype=float)
        self._prevalence_error = self._squared_error_of_prevalences()

    def metrics(self, logits: Array) -> dict[str, Array]:
        """Return Brier skill, log loss, ECE and ACE on the original images and on each resample.

        Args:
            logits: Log-odds, ``(n, c)``.

        Returns:
            Values by metric, ``(1 + resamples,)`` each. The first value is that of the original
            images.
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
        """Return counts, sums of p and sums of targets per image and bin, (n, 3 · BINS)."""
        n, known = len(p), self._known
        bins = np.searchsorted(np.arange(1, BINS) / BINS, p, side="right")
        cells = (bins + BINS * np.arange(n)[:, None])[known]
        sums = [
            np.bincount(cells, weights, n * BINS).reshape(n, BINS)
            for weights in (None, p[known], self._targets[known])
        ]
        return np.hstack(sums)

    def _squared_error_of_prevalences(self) -> Array:
        """Return the total squared error of predicting the prevalences, for each resample."""
        y = np.where(self._known, self._targets, 0)
        totals, squares = self._weights @ y, self._weights @ y**2
        errors = squares - totals * divide_or_nan(totals, self._weights @ self._known.astype(float))
        errors[~(errors > 1e-12 * squares)] = 0  # removes rounding errors if all targets are equal
        return np.asarray(errors.sum(axis=1))


def bench_resampling_mean_average_precision(
    scores: Array, is_positive: Flags, weights: Array
) -> Array:
    """Return the mean average precision on each resample, ``(1 + resamples,)``.

    The mean is over the labels with a positive image in the resample, and NaN without such a label.

    Args:
        scores: Scores without ties, ``(n, c)``.
        is_positive: True for positive targets, ``(n, c)``.
        weights: Result of `bench_resampling_weights`, ``(1 + resamples, n)``.
    """
    columns = zip(scores.T, is_positive.T, strict=True)
    precisions = np.array([_bench_resampling_average_precision(*c, weights) for c in columns])
    n_defined = (~np.isnan(precisions)).sum(axis=0)
    mean: Array = divide_or_nan(np.nansum(precisions, axis=0), n_defined)
    return mean


def bench_resampling_difference_intervals(
    first: Mapping[str, Array], second: Mapping[str, Array]
) -> dict[str, ConfidenceInterval]:
    """Return the difference ``first`` - ``second`` of each metric, with a 95 % interval.

    Args:
        first: Values by metric, from `BenchResampling.metrics`, ``(1 + resamples,)`` each.
        second: Values by metric on the same resamples, ``(1 + resamples,)`` each.

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979.

    Differs:
        The resampled differences are shifted so that their mean is the difference on the original
        images, as in ``metrics.paired_bootstrap_interval``. Without the shift, the interval of a
        calibration error would be biased, because binned errors are larger on resamples.
    """
    return {name: _centred_bench_resampling_interval(first[name] - second[name]) for name in first}


def _centred_bench_resampling_interval(values: Array) -> ConfidenceInterval:
    """Return the first value with the 95 % interval of the others, shifted to the first value."""
    value, resampled = float(values[0]), values[1:]
    defined = resampled[~np.isnan(resampled)]
    if not defined.size:
        return ConfidenceInterval(value, float("nan"), float("nan"), resampled.size)
    low, high = np.quantile(defined - defined.mean(), INTERVAL_QUANTILES) + value
    return ConfidenceInterval(value, float(low), float(high), int(resampled.size - defined.size))


def _bench_resampling_average_precision(scores: Array, is_positive: Flags, weights: Array) -> Array:
    """Return the average precision of one label on each resample, NaN if no image is positive."""
    order = np.argsort(-scores, kind="stable")
    counts, is_positive = weights[:, order], is_positive[order]
    true_positives = (counts * is_positive).cumsum(axis=1)[:, is_positive]
    precision = divide_or_nan(true_positives, counts.cumsum(axis=1)[:, is_positive])
    precision = np.nan_to_num(precision)  # undefined before the first image with a positive weight
    positive_counts = counts[:, is_positive]
    weighted_sum = (positive_counts * precision).sum(axis=1)
    return np.asarray(divide_or_nan(weighted_sum, positive_counts.sum(axis=1)))
