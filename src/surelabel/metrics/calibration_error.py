"""Three summaries of reliability: ECE, ACE and MCE. All shrink with data, none is ever 0.

Print ``noise_floor`` beside them, and never read them without Brier skill or log loss: a model
that knows only how frequent a label is has a small calibration error.
"""

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import Reliability, reliability, reliability_per_class
from surelabel.records import Array


def ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Expected calibration error of all decisions: mean gap, weighted by how many are in a bin.

        ECE = Σ_b  n_b / n · |accuracy_b - confidence_b|

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
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015; accuracy is the share of present labels.

    Differs:
        A probability of exactly 1 falls into the last bin; torchmetrics gives it one of its own.

    Example:
        >>> round(ece([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.3
    """
    return float(_expected(reliability(probabilities, targets, known, bins=bins)))


def ece_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``ece`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``ece``, class by class.
    """
    return _expected(reliability_per_class(probabilities, targets, known, bins=bins))


def ace(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Average calibration error of all decisions: every bin that is not empty counts the same.

        ACE = mean over bins with n_b > 0 of  |accuracy_b - confidence_b|

    Args:
        probabilities: As for ``ece``.
        targets: As for ``ece``.
        known: As for ``ece``.
        bins: As for ``ece``.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: as for ``ece``.
        ConfigError: as for ``ece``.

    Source:
        Neumann, Zisserman and Vedaldi, Relaxed Softmax, NeurIPS workshop on machine learning for
        intelligent transportation systems, 2018, as netcal computes it.

    Differs:
        Not the adaptive calibration error, of bins of equal mass, that shares its letters.

    Example:
        >>> round(ace([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.25
    """
    return float(_average(reliability(probabilities, targets, known, bins=bins)))


def ace_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``ace`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``ace``, class by class.
    """
    return _average(reliability_per_class(probabilities, targets, known, bins=bins))


def mce(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> float:
    """Maximum calibration error of all decisions: the widest gap of a bin that is not empty.

        MCE = max over bins with n_b > 0 of  |accuracy_b - confidence_b|

    Args:
        probabilities: As for ``ece``.
        targets: As for ``ece``.
        known: As for ``ece``.
        bins: As for ``ece``.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: as for ``ece``.
        ConfigError: as for ``ece``.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015.

    Example:
        >>> round(mce([[0.1, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.4
    """
    return float(_widest(reliability(probabilities, targets, known, bins=bins)))


def mce_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
) -> Array:
    """``mce`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``mce``, class by class.
    """
    return _widest(reliability_per_class(probabilities, targets, known, bins=bins))


def ece_of_candidates(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    threshold: float = 0.05,
) -> float:
    """``ece`` of the decisions that are in question, those of probability ``threshold`` or more.

    Most labels are absent from most pictures and easily so; they make the plain ECE look small.

    Args:
        probabilities: As for ``ece``.
        targets: As for ``ece``.
        known: As for ``ece``.
        bins: As for ``ece``; still of the whole of [0, 1].
        threshold: Least probability of a decision that counts, in [0, 1].

    Returns:
        A number in [0, 1], 0 is best; NaN when no known decision reaches the threshold.

    Raises:
        InputError: as for ``ece``.
        ConfigError: as for ``ece``, or ``threshold`` lies outside [0, 1].

    Source:
        None; ours: ``ece`` over the known decisions with p >= threshold.

    Example:
        >>> round(ece_of_candidates([[0.01, 0.9, 0.9]], [[0, 1, 0]]), 4)
        0.4
    """
    known = _candidates(probabilities, targets, known, threshold)
    return ece(probabilities, targets, known, bins=bins)


def ece_of_candidates_per_class(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    threshold: float = 0.05,
) -> Array:
    """``ece_of_candidates`` of every class, ``(c,)``; NaN for a class without candidates.

    Source:
        None; ours: ``ece_of_candidates``, class by class.
    """
    known = _candidates(probabilities, targets, known, threshold)
    return ece_per_class(probabilities, targets, known, bins=bins)


def _candidates(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    threshold: float,
) -> npt.ArrayLike:
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]. Got {threshold}.")
    p, _, known = checked_probabilities(probabilities, targets, known)
    return known & (p >= threshold)


def _expected(bins: Reliability) -> Array:
    weighted = np.where(bins.counts > 0, bins.counts * bins.gaps, 0.0)
    return ratio(weighted.sum(axis=-1), bins.counts.sum(axis=-1))


def _average(bins: Reliability) -> Array:
    gaps = np.where(bins.counts > 0, bins.gaps, 0.0)
    return ratio(gaps.sum(axis=-1), (bins.counts > 0).sum(axis=-1))


def _widest(bins: Reliability) -> Array:
    widest: Array = np.fmax.reduce(bins.gaps, axis=-1)
    return widest
