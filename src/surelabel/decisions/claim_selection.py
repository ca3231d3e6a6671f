"""Accept claims about new images with a bound on the expected share of false claims.

Two rules have the same guarantee. *Benjamini-Hochberg* with conformal p-values computes the
threshold of the confidence from the targets of the calibration images. This rule is used if at
least 2 / level calibration images have a confidence of at least 0.5. Their number is estimated from
the confidences of all images. Otherwise, *one test* is used. The one test selects a threshold
without targets, and accepts all new images above the threshold, or none. The rule and the threshold
of the one test are selected from the confidences of calibration images and new images together. The
selection uses neither the targets nor the distinction between both kinds of images, so the
guarantee holds.

Proof for the one test: if the confidences and the claims of all images are given without their
order, the threshold is fixed. The N images above the threshold, and the number T of false claims
among the N images, are then fixed too. If n of the N images are calibration images, each choice of
n images has the same probability. The number of false claims among the n images is hypergeometric,
and :func:`most_false_claims` bounds the expected share of false claims for every T.
"""

from functools import lru_cache
from math import ceil, floor

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, gammaln

from surelabel.arrays import Array, Flags
from surelabel.decisions.conformal_selection import benjamini_hochberg, conformal_p_values
from surelabel.decisions.input_validation import check_decision_setting_fraction
from surelabel.errors import InputError

N_THRESHOLDS = 16  # candidate thresholds of the one test
N_COUNTS = 64  # numbers of false claims at which the expected share is computed at once
ROUNDING = 1e-9  # rounding error of expected shares
MANY_IMAGES = 10**6  # new images, if their number is not known yet
LIKELY = 0.5  # confidence of a claim that is predicted to be true
FEW_IMAGES = 2.0  # level · likely calibration images, below which the one test is used


def accept_claims(
    confidences: npt.ArrayLike,
    calibration: npt.ArrayLike,
    is_false: npt.ArrayLike,
    *,
    level: float = 0.05,
) -> Flags:
    """Return the mask of the accepted new images, ``(m,)``.

    The expected share of false claims among the accepted images is at most ``level``, if the new
    images and the calibration images are exchangeable, such as random samples of one collection.

    Args:
        confidences: Probability that the claim about each of m new images is true, ``(m,)``. The
            guarantee also holds if the probabilities are wrong.
        calibration: Probability that the claim about each of n calibration images is true, computed
            in the same way, ``(n,)``.
        is_false: True for calibration images whose claim is false, ``(n,)``.
        level: Bound of the expected share of false claims, in (0, 1).

    Returns:
        True for accepted new images. Without a calibration image, no image is accepted.

    Raises:
        InputError: If the shapes do not match, or if a confidence is outside [0, 1].
        ConfigError: If ``level`` is outside (0, 1).

    Source:
        Jin and Candès, Selection by Prediction with Conformal p-values, Journal of Machine Learning
        Research 24, 2023, for Benjamini-Hochberg. The one test is ours.

    Example:
        >>> confidences, none_false = [0.99, 0.98, 0.97], [False] * 8
        >>> accept_claims(confidences, [0.9] * 8, none_false, level=0.1).tolist()
        [True, True, True]
        >>> accept_claims(confidences, [0.9] * 8, [True, *none_false[1:]], level=0.1).tolist()
        [False, False, False]
    """
    check_decision_setting_fraction("level", level)
    p_values = conformal_p_values(confidences, calibration, is_false)
    new, known = np.asarray(confidences, np.float64), np.asarray(calibration, np.float64)
    pooled = -np.sort(-np.concatenate([new, known]))
    if pooled.size and not 0 <= pooled[-1] <= pooled[0] <= 1:
        raise InputError(
            f"Confidences must be in [0, 1]; got values from {pooled[-1]:g} to {pooled[0]:g}. "
            "Give probabilities."
        )
    if not len(new) or not len(known):
        return np.zeros(len(new), dtype=bool)
    errors = np.cumsum(1 - pooled) / np.arange(1, len(pooled) + 1)
    likely_share = np.count_nonzero(pooled >= LIKELY) / len(pooled)
    if level * len(known) * likely_share >= FEW_IMAGES:
        return benjamini_hochberg(p_values, level=level)
    threshold = _threshold_of_one_test(pooled, errors, len(known), level)
    is_above = known >= threshold
    n_new, n_false = int((new >= threshold).sum()), int(np.asarray(is_false)[is_above].sum())
    if n_false > most_false_claims(int(is_above.sum()), n_new, level):
        return np.zeros(len(new), dtype=bool)
    accepted: Flags = new >= threshold
    return accepted


@lru_cache(maxsize=4096)
def most_false_claims(n: int, m: int, level: float) -> int:
    """Return the largest number of false calibration claims at which new images are accepted.

    The n calibration images are a random subset of n + m images. If the claims of T images are
    false, K of the T images are calibration images, and (T - K) / m is the share of false claims of
    the new images. The new images are accepted if K <= k. The expected share is

        f(T) = sum over j <= k of  P(K = j) · (T - j) / m,   K ~ Hypergeometric(n + m, T, n).

    The result is the largest k with f(T) <= level for all T.

    Args:
        n: Number of calibration images.
        m: Number of new images.
        level: Bound of the expected share of false claims, in (0, 1).

    Returns:
        The largest number k, or -1 if there are too few calibration images or no new images.

    Example:
        >>> [most_false_claims(n, 1000, 0.05) for n in (6, 7, 20, 40)]
        [-1, 0, 1, 3]
    """
    if not m:
        return -1
    k = max(floor(level * (n + 1)) - 2, -1)  # f(T) <= (k + 1) / (n + 1) for all T
    while k < n and _largest_expected_share(n, m, k + 1) <= level + ROUNDING:
        k += 1
    return k


def fewest_calibration_images(level: float, n_new: int = MANY_IMAGES) -> int:
    """Return the smallest number of calibration images with which new images can be accepted.

    Args:
        level: Bound of the expected share of false claims, in (0, 1).
        n_new: Number of new images, >= 1. If there are few new images, more calibration images are
            needed.

    Raises:
        ConfigError: If ``level`` is outside (0, 1).

    Example:
        >>> [fewest_calibration_images(level) for level in (0.05, 0.1)], fewest_calibration_images(
        ...     0.05, n_new=1)
        ([7, 4], 19)
    """
    check_decision_setting_fraction("level", level)
    low, high = 1, ceil(1 / level)
    while low < high:
        middle = (low + high) // 2
        is_enough = most_false_claims(middle, n_new, level) >= 0
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low


def _largest_expected_share(n: int, m: int, k: int) -> float:
    """Return the maximum over T of the expected share of false claims f(T)."""
    low, high = 0, n + m
    while True:
        counts = np.unique(np.linspace(low, high, N_COUNTS).astype(np.int64))
        shares = _expected_shares(counts, n, m, k)
        best = int(shares.argmax())
        if high - low < N_COUNTS:
            return float(shares[best])
        low, high = int(counts[max(best - 1, 0)]), int(counts[min(best + 1, len(counts) - 1)])


def _expected_shares(counts: npt.NDArray[np.int64], n: int, m: int, k: int) -> Array:
    """Return f(T) for each number T of false claims among all images, ``(g,)``."""
    n_false = np.arange(k + 1)
    total = counts[:, None].astype(np.float64)
    is_possible = (n_false <= total) & (n - n_false <= n + m - total)
    log_probability = (
        _log_binomial(total, n_false) + _log_binomial(n + m - total, n - n_false)
    ) - _log_binomial(np.float64(n + m), np.float64(n))
    probability = np.where(is_possible, np.exp(np.where(is_possible, log_probability, 0)), 0)
    shares: Array = (probability * (total - n_false) / m).sum(axis=1)
    return shares


def _log_binomial(n: npt.ArrayLike, k: npt.ArrayLike) -> Array:
    """Return the logarithms of the binomial coefficients, which are valid for 0 <= k <= n only."""
    n, k = np.maximum(n, 0), np.maximum(k, 0)
    rest = np.maximum(n - k, 0)
    values: Array = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(rest + 1.0)
    return values


def _threshold_of_one_test(pooled: Array, errors: Array, n: int, level: float) -> float:
    """Return the threshold with the most expected accepted images, for calibrated probabilities.

    Args:
        pooled: Probabilities of calibration images and new images together, in decreasing order.
        errors: Mean probability of a false claim among the images up to each rank of ``pooled``.
        n: Number of calibration images.
        level: Bound of the expected share of false claims.

    Returns:
        The threshold, or infinity if no threshold has enough calibration images.
    """
    best, threshold = 0.0, np.inf
    n_likely = max(int(np.count_nonzero(pooled >= LIKELY)), 1)
    lengths = np.linspace(0, 2 * n_likely, N_THRESHOLDS + 1)[1:].round().clip(1, len(pooled))
    for length in np.unique(lengths.astype(int)).tolist():
        n_above = round(n * length / len(pooled))
        limit = most_false_claims(n_above, length - n_above, level)
        if limit < 0:
            continue
        expected = length * float(bdtr(limit, n_above, errors[length - 1]))
        if expected > best:
            best, threshold = expected, float(pooled[length - 1])
    return threshold
