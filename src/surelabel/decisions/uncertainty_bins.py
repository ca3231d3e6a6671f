"""Compute accuracy in bins of increasing uncertainty, and its correlation with uncertainty."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError
from surelabel.shapes import check_shapes

UNCERTAINTY_BINS = 10


@dataclass(frozen=True)
class UncertaintyBins:
    """Mean uncertainty and mean accuracy in bins with equal numbers of decisions.

    Attributes:
        uncertainty: Mean uncertainty of each bin, non-decreasing, ``(b,)``.
        accuracy: Mean accuracy of each bin, such as R@1, ``(b,)``.
        decisions_per_bin: Number of decisions in each bin.
        n_left_out: Number of the most uncertain decisions that are in no bin, below b.
    """

    uncertainty: Array
    accuracy: Array
    decisions_per_bin: int
    n_left_out: int

    @property
    def pearson_with_index(self) -> float:
        """Return the Pearson correlation of accuracy and bin number, in [-1, 1] or NaN."""
        return pearson_correlation(np.arange(len(self.accuracy)), self.accuracy)

    @property
    def pearson_with_uncertainty(self) -> float:
        """Return the Pearson correlation of accuracy and mean uncertainty, or NaN if undefined."""
        return pearson_correlation(self.uncertainty, self.accuracy)

    @property
    def spearman(self) -> float:
        """Return the Spearman correlation of accuracy and bin number, in [-1, 1] or NaN."""
        return spearman_correlation(np.arange(len(self.accuracy)), self.accuracy)


def bin_by_uncertainty(
    uncertainty: npt.ArrayLike, accuracy: npt.ArrayLike, *, bins: int = UNCERTAINTY_BINS
) -> UncertaintyBins:
    """Sort decisions by uncertainty and average their accuracy in bins of equal size.

    Each bin has n // bins decisions. A correlation over ten bins is usually far stronger than the
    correlation over decisions, so it does not measure how well single errors are detected. To
    measure the detection of single errors, use ``error_auroc``.

    Args:
        uncertainty: Finite uncertainty of n decisions, ``(n,)``. Equal values keep their order.
        accuracy: Accuracy of each decision in [0, 1], such as 1 if correct, ``(n,)``.
        bins: Number of bins, from 1 to n.

    Raises:
        InputError: If the shapes differ, if a value is not finite, or if there are fewer decisions
            than bins.

    Source:
        Chun, Improved Probabilistic Image-Text Representations (PCME++), ICLR 2024, and its code.
    """
    values = np.asarray(uncertainty, dtype=np.float64)
    accuracies = np.asarray(accuracy, dtype=np.float64)
    n_decisions = check_shapes(uncertainty=(values, "n"), accuracy=(accuracies, "n"))["n"]
    if not (np.isfinite(values).all() and np.isfinite(accuracies).all()):
        raise InputError(
            "uncertainty and accuracy must be finite; got NaN or infinite values. Leave out the "
            "decisions with these values."
        )
    if not 1 <= bins <= n_decisions:
        raise InputError(
            f"bins must be between 1 and the number of decisions, {n_decisions}; got {bins}. Use "
            "fewer bins."
        )
    size = n_decisions // bins
    order = np.argsort(values, kind="stable")[: size * bins].reshape(bins, size)
    return UncertaintyBins(
        values[order].mean(axis=1),
        accuracies[order].mean(axis=1),
        size,
        n_decisions - size * bins,
    )


def pearson_correlation(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the Pearson correlation of two variables, or NaN if one of them is constant.

    Args:
        first: First variable of n observations, ``(n,)``. If n < 2, the correlation is NaN.
        second: Second variable of the observations, ``(n,)``.

    Raises:
        InputError: If the shapes differ.

    Example:
        >>> round(pearson_correlation([1, 2, 3], [2, 4, 7]), 4)
        0.9934
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    check_shapes(first=(x, "n"), second=(y, "n"))
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def spearman_correlation(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the Spearman rank correlation of two variables, or NaN if one of them is constant.

    Equal values have the mean of their ranks.

    Args:
        first: First variable of n observations, ``(n,)``. If n < 2, the correlation is NaN.
        second: Second variable of the observations, ``(n,)``.

    Raises:
        InputError: If the lengths differ.

    Example:
        >>> spearman_correlation([1, 2, 3], [2, 4, 70])
        1.0
    """
    from scipy.stats import rankdata  # slow to import

    return pearson_correlation(rankdata(first), rankdata(second))
