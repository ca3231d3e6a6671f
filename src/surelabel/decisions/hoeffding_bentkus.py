"""Hoeffding-Bentkus p-values, which test whether a mean risk lies below a level."""

from math import ceil, log

import numpy as np
from scipy.special import rel_entr
from scipy.stats import binom

from surelabel.arrays import Array

ROUNDING = 1e-6  # rounding error of sums of many shares


def hoeffding_bentkus_p_values(risk_sums: Array, counts: Array, level: float) -> Array:
    """Return p-values of the hypothesis that the mean risk is above the level, ``(g,)``.

        min(exp(-n · kl(min(r, level), level)),  e · P(Binomial(n, level) <= ceil(n · r)))

    Here n is the number of risks, r is the mean risk, e is Euler's number, and kl(a, b) is the
    Kullback-Leibler divergence of Bernoulli distributions with means a and b.

    Args:
        risk_sums: g sums of independent risks in [0, 1] (n · r), ``(g,)``.
        counts: Number of risks in each sum (n), ``(g,)``. The p-value of an empty sum is 1.
        level: Upper bound of the mean risk, to be tested, in (0, 1).

    Source:
        Hoeffding-Bentkus: Bates, Angelopoulos, Lei, Malik and Jordan, Distribution-Free,
        Risk-Controlling Prediction Sets, Journal of the ACM 2021, arXiv:2101.02703.

    Example:
        >>> hoeffding_bentkus_p_values(np.array([0.0, 1.0]), np.array([30.0, 30.0]), 0.1).round(4)
        array([0.0424, 0.3777])
    """
    mean = np.divide(risk_sums, counts, out=np.ones_like(risk_sums), where=counts > 0)
    hoeffding = np.exp(-counts * _hoeffding_bernoulli_divergence(np.minimum(mean, level), level))
    bentkus = np.e * binom.cdf(np.ceil(risk_sums - ROUNDING), counts, level)
    return np.where(counts > 0, np.minimum(hoeffding, bentkus), 1.0)


def hoeffding_bentkus_sample_size(risk: float, level: float, confidence: float) -> int | None:
    """Return the approximate number of images needed to show that a mean risk is below a level.

    Returns:
        The number of images, or None if the risk is not below the level.

    Example:
        >>> [hoeffding_bentkus_sample_size(risk, 0.1, 0.9) for risk in (0.0, 0.05)]
        [22, 138]
        >>> hoeffding_bentkus_sample_size(0.1, 0.1, 0.9) is None
        True
    """
    if risk >= level:
        return None
    divergence = float(_hoeffding_bernoulli_divergence(np.float64(risk), level))
    return ceil(-log(1 - confidence) / divergence - ROUNDING)


def _hoeffding_bernoulli_divergence(mean: Array | np.float64, level: float) -> Array:
    """Return the divergence of Bernoulli distributions with the means ``mean`` and ``level``."""
    divergence: Array = rel_entr(mean, level) + rel_entr(1 - mean, 1 - level)
    return divergence
