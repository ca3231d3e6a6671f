"""The widest gap of a reliability diagram, each bin weighted by its share of the decisions."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
from surelabel.records import Array


def mce_weighted(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Largest single term of the expected calibration error of all decisions.

        max over bins of  n_b / n · |accuracy_b - confidence_b|

    Never above ``ece``. It is no maximum error: a rare bin may be wrong by any amount. Tables of
    "MCE" that lie below their ECE were made like this; ``mce`` is the true maximum.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` is not a whole number of at least 1.

    Source:
        The released code of Xiong et al., Proximity-Informed Calibration for Deep Neural Networks,
        NeurIPS 2023, arXiv:2306.04590, where it is called MCE.

    Example:
        >>> round(mce_weighted([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.2667
    """
    return float(_largest_term(reliability(probabilities, targets, known, bins=bins)))


def mce_weighted_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``mce_weighted`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``mce_weighted``, class by class.
    """
    return _largest_term(reliability_per_class(probabilities, targets, known, bins=bins))


def _largest_term(bins: Reliability) -> Array:
    terms = np.where(bins.counts > 0, bins.counts * bins.gaps, 0.0)
    return ratio(terms.max(axis=-1), bins.counts.sum(axis=-1))
