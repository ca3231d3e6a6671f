"""Whether a small risk in some pictures proves a small risk in all like them."""

from math import ceil, log

import numpy as np
from scipy.special import rel_entr
from scipy.stats import binom

from surelabel.records import Array

ROUNDING = 1e-6  # what sums of many shares may be off by


def p_values(total: Array, cases: Array, level: float) -> Array:
    """How likely so small a sum of risks would be if their mean were above the level.

        min(exp(-n · kl(min(r, level), level)),  e · P(Binomial(n, level) <= ceil(n · r)))

    Args:
        total: Sums of independent risks in [0, 1], n · r, ``(g,)``.
        cases: How many were summed, n, ``(g,)``; the p-value of none is 1.
        level: In (0, 1).

    Source:
        Hoeffding-Bentkus: Bates, Angelopoulos, Lei, Malik and Jordan, Distribution-Free,
        Risk-Controlling Prediction Sets, Journal of the ACM 2021, arXiv:2101.02703.

    Example:
        >>> p_values(np.array([0.0, 1.0]), np.array([30.0, 30.0]), 0.1).round(4)
        array([0.0424, 0.3777])
    """
    mean = np.divide(total, cases, out=np.ones_like(total), where=cases > 0)
    hoeffding = np.exp(-cases * _divergence(np.minimum(mean, level), level))
    bentkus = np.e * binom.cdf(np.ceil(total - ROUNDING), cases, level)
    return np.where(cases > 0, np.minimum(hoeffding, bentkus), 1.0)


def cases_needed(risk: float, level: float, confidence: float) -> int | None:
    """About how many cases of this mean risk prove the level; None when it is not below it.

    Example:
        >>> cases_needed(0.0, 0.1, 0.9), cases_needed(0.05, 0.1, 0.9), cases_needed(0.1, 0.1, 0.9)
        (22, 138, None)
    """
    if risk >= level:
        return None
    return ceil(-log(1 - confidence) / float(_divergence(np.float64(risk), level)) - ROUNDING)


def _divergence(mean: Array | np.float64, level: float) -> Array:
    """Kullback-Leibler divergence of two coins."""
    divergence: Array = rel_entr(mean, level) + rel_entr(1 - mean, 1 - level)
    return divergence
