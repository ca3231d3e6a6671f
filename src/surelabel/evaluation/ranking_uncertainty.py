"""Correlate the mean uncertainty of the first items with the quality of a ranking."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.decisions import bin_by_uncertainty, pearson_correlation, spearman_correlation
from surelabel.decisions.uncertainty_bins import UNCERTAINTY_BINS
from surelabel.errors import InputError
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class RankingUncertainty:
    """Correlations of the mean uncertainty of the first k items with the average precision at R.

    Attributes:
        k: Number of items at the top of the ranked list whose uncertainty is averaged.
        bin_pearson: Pearson correlation of mean average precision and bin number, over ten bins of
            equal size. The value is NaN if it is undefined or if there are fewer queries than bins.
        pearson: Pearson correlation over queries, or NaN if undefined.
        spearman: Spearman correlation over queries, or NaN if undefined.
    """

    k: int
    bin_pearson: float
    pearson: float
    spearman: float


def evaluate_ranking_uncertainty(
    uncertainties: npt.ArrayLike, average_precision: npt.ArrayLike
) -> tuple[RankingUncertainty, ...]:
    """Correlate the mean uncertainty of the first k items with the average precision, for each k.

        mean uncertainty of a query = (1 / k) · sum of the uncertainties at ranks 1 to k

    Args:
        uncertainties: Finite uncertainty of the first K items of q queries, best first, ``(q, K)``.
        average_precision: Average precision at R of each query, in [0, 1], ``(q,)``.

    Returns:
        Correlations for k = 1 to K.

    Raises:
        InputError: If the shapes differ, or if a value is not finite.

    Source:
        VACSR, arXiv:2605.30968, eq. 27 and appendix H.
    """
    values = np.asarray(uncertainties, dtype=np.float64)
    precision = np.asarray(average_precision, dtype=np.float64)
    check_shapes(uncertainties=(values, "q k"), average_precision=(precision, "q"))
    if not (np.isfinite(values).all() and np.isfinite(precision).all()):
        raise InputError(
            "uncertainties and average_precision must be finite; got NaN or infinite values. Leave "
            "out queries with such values."
        )
    means = np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1)
    has_bins = len(values) >= UNCERTAINTY_BINS
    return tuple(
        RankingUncertainty(
            k,
            bin_by_uncertainty(mean, precision).pearson_with_index if has_bins else float("nan"),
            pearson_correlation(mean, precision),
            spearman_correlation(mean, precision),
        )
        for k, mean in enumerate(means.T, 1)
    )
