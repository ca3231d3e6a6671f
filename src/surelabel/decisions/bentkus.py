"""Compute Bentkus p-values, which test whether a mean risk lies below a level."""

from math import ceil, log

import numpy as np
from scipy.special import rel_entr

from surelabel.arrays import Array

ROUNDING = 1e-6  # rounding error of sums of many shares


def bentkus_p_values(risk_sums: Array, counts: Array, level: float) -> Array:
    """Return p-values of the hypothesis that the mean risk is above the level, ``(g,)``.

        min over t > s of  E[max(t - B, 0)] / (t - s),   B ~ Binomial(n, level)

    Here s is the sum of n independent risks, each in [0, 1]. For a given mean risk, the expectation
    of a convex function of the sum, such as max(t - s, 0), is highest if all risks are 0 or 1.
    Markov's inequality then bounds the probability of a sum of at most s. The p-value is at most
    the Hoeffding-Bentkus p-value and at least P(B <= s). For a sum of 0, the p-value is equal to
    P(B <= s). If s is at least n · ``level``, the p-value is 1.

    Args:
        risk_sums: Sum s of independent risks in [0, 1], for each of g tests, ``(g,)``.
        counts: Number n of risks in each sum, ``(g,)``. The p-value of an empty sum is 1.
        level: Tested upper bound of the mean risk, in (0, 1).

    Source:
        Bentkus, On Hoeffding's inequalities, Annals of Probability 32, 2004. Pelekis, Ramon and
        Wang, On the Bernstein-Hoeffding method, arXiv:1503.02284.

    Example:
        >>> bentkus_p_values(np.array([0.0, 1.0]), np.array([30.0, 30.0]), 0.1).round(4)
        array([0.0424, 0.2261])
    """
    n = np.maximum(counts, 1)
    is_below_level = (counts > 0) & (risk_sums < n * level)
    low, high = np.floor(risk_sums) + 1, n + 1
    while (low < high).any():  # the ratio is quasi-convex in t and has its minimum at an integer
        t = np.floor((low + high) / 2)
        is_rising = _binomial_cdf(t, n, level) * (t - risk_sums) >= _bentkus_mean_gap(t, n, level)
        low, high = np.where(is_rising, low, np.minimum(t + 1, high)), np.where(is_rising, t, high)
    ratio = _bentkus_mean_gap(low, n, level) / np.maximum(low - risk_sums, ROUNDING)
    return np.where(is_below_level, np.clip(ratio, 0, 1), 1.0)


def hoeffding_sample_size(risk: float, level: float, confidence: float) -> int | None:
    """Return the approximate number of images needed to show that a mean risk is below a level.

    The number is that of Hoeffding's inequality, exp(-n · kl(risk, level)) <= 1 - confidence, where
    kl(a, b) is the Kullback-Leibler divergence of Bernoulli distributions with means a and b.

    Args:
        risk: Expected mean risk, in [0, 1].
        level: Upper bound of the mean risk, in (0, 1).
        confidence: Confidence of the bound, in (0, 1).

    Returns:
        The number of images, or None if the risk is not below the level.

    Example:
        >>> [hoeffding_sample_size(risk, 0.1, 0.9) for risk in (0.0, 0.05)]
        [22, 138]
        >>> hoeffding_sample_size(0.1, 0.1, 0.9) is None
        True
    """
    if risk >= level:
        return None
    divergence = float(rel_entr(risk, level) + rel_entr(1 - risk, 1 - level))
    return ceil(-log(1 - confidence) / divergence - ROUNDING)


def _bentkus_mean_gap(t: Array, n: Array, level: float) -> Array:
    """Return E[max(t - B, 0)] for binomial variables B of n trials and whole numbers t."""
    return t * _binomial_cdf(t - 1, n, level) - n * level * _binomial_cdf(t - 2, n - 1, level)


def _binomial_cdf(t: Array, n: Array, level: float) -> Array:
    """Return P(B <= t) for binomial variables B of n trials."""
    from scipy.stats import binom  # slow to import, and used for guarantees only

    probabilities: Array = binom.cdf(t, n, level)
    return probabilities
