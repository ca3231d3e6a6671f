"""Compute the area under the ROC curve of an uncertainty as a detector of errors."""

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.shapes import check_shapes


def error_auroc(
    uncertainty: npt.ArrayLike, is_error: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> float:
    """Return the probability that an error is more uncertain than a correct decision.

    A pair with equal uncertainties counts one half. The value of an uninformative uncertainty is
    0.5.

    Args:
        uncertainty: Finite uncertainty of n decisions, ``(n,)``.
        is_error: True for wrong decisions, ``(n,)``.
        weights: Weight of each decision, >= 0, such as its count in a bootstrap resample, ``(n,)``.
            If None, all weights are 1.

    Returns:
        AUROC in [0, 1], or NaN if all decisions with a weight above 0 are correct or all are wrong.

    Raises:
        InputError: If the shapes differ, if an uncertainty is not finite, or if a weight is
            negative.

    Source:
        Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution
        Examples in Neural Networks, ICLR 2017.

    Example:
        >>> error_auroc([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
        0.875
    """
    values = np.asarray(uncertainty, dtype=np.float64)
    wrong = np.asarray(is_error, dtype=bool)
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    check_shapes(uncertainty=(values, "n"), is_error=(wrong, "n"), weights=(weight, "n"))
    if not np.isfinite(values).all():
        raise InputError(
            "uncertainty must be finite; got NaN or infinite values. Leave out the decisions with "
            "these values."
        )
    if (weight < 0).any():
        raise InputError(f"weights must be >= 0; got {weight.min()}.")
    _, group = np.unique(values, return_inverse=True)
    n_wrong = np.bincount(group, weight * wrong)
    n_correct = np.bincount(group, weight * ~wrong)
    n_pairs = n_wrong.sum() * n_correct.sum()
    if not n_pairs:
        return float("nan")
    n_less_uncertain = np.cumsum(n_correct) - n_correct / 2
    return float(n_wrong @ n_less_uncertain / n_pairs)
