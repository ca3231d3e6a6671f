"""Compute risk-coverage curves: the error rate of the most certain decisions or images."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.decisions.input_validation import validate_decision_inputs
from surelabel.errors import InputError
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class RiskCoverageCurve:
    """Error rate of the most certain decisions, for each fraction of kept decisions.

    A decision concerns an image with all its labels, a label, or the first match of a query.

    Attributes:
        coverage: Fraction of decisions that are kept, increasing to 1, ``(n,)``. Decisions are kept
            in order of increasing uncertainty.
        risk: Mean error of the kept decisions, ``(n,)``. The last value is the mean error of all
            decisions.
        area: Area under the risk-coverage curve (AURC), computed as the mean of ``risk``. If the
            uncertainty is not informative, the area is close to the mean error of all decisions.
        optimal_area: Area if the decisions are sorted by their error. No other order has a smaller
            area.
    """

    coverage: Array
    risk: Array
    area: float
    optimal_area: float

    def risk_at(self, coverage: float) -> float:
        """Return the mean error at the lowest coverage that is at least the given fraction.

        Args:
            coverage: Fraction of kept decisions, in (0, 1].

        Raises:
            InputError: If ``coverage`` is not in (0, 1].
        """
        if not 0 < coverage <= 1:
            raise InputError(f"coverage must be in (0, 1]; got {coverage}. Use 0.8 for 80 %.")
        return float(self.risk[np.searchsorted(self.coverage, coverage - 1e-12)])


def compute_risk_coverage(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> RiskCoverageCurve:
    """Sort images by uncertainty and compute the error rate of the most certain images.

        uncertainty = mean of -p · log(p) - (1 - p) · log(1 - p) over the labels of an image
        error       = mean of |[p >= 0.5] - y| over the labels of an image

    Here p is the probability of a label, y is its target, and [p >= 0.5] is 1 if p >= 0.5 and
    otherwise 0. Only labels with a known target are included.

    Args:
        logits: Log-odds of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
        known: True where the target is known, ``(n, c)``. If None, all targets except
            NaN are known.

    Returns:
        The risk-coverage curve and its area. Images without a known target are left out. The
        errors of images with equal uncertainty are replaced by their mean, so that the order of
        these images does not change the curve.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if no target is known, or if a
            known target is outside [0, 1].

    Source:
        El-Yaniv and Wiener, On the Foundations of Noise-free Selective Classification, JMLR 2010;
        Geifman and El-Yaniv, Selective Classification for Deep Neural Networks, NeurIPS 2017,
        arXiv:1705.08500.

    Differs:
        The authors reject single predictions. Here all labels of an image are kept or rejected.

    Example:
        >>> curve = compute_risk_coverage([[3.0, -3.0], [0.1, -3.0]], [[1, 0], [0, 0]])
        >>> curve.coverage, curve.risk, curve.area, curve.optimal_area
        (array([0.5, 1. ]), array([0.  , 0.25]), 0.125, 0.125)
    """
    p, y, known = validate_decision_inputs(logits, targets, known)
    is_labelled = known.any(axis=1)
    p, y, known = p[is_labelled], y[is_labelled], known[is_labelled]
    uncertainty = np.mean(entr(p) + entr(1 - p), axis=1, where=known)
    error = np.mean(np.abs((p >= 0.5) - y), axis=1, where=known)
    return risk_coverage_of_errors(uncertainty, error)


def risk_coverage_of_errors(uncertainty: npt.ArrayLike, error: npt.ArrayLike) -> RiskCoverageCurve:
    """Sort decisions by uncertainty and compute the mean error of the most certain decisions.

    Args:
        uncertainty: Finite uncertainty of n decisions, ``(n,)``.
        error: Error of each decision, such as 1 if wrong and 0 if correct, ``(n,)``.

    Returns:
        The risk-coverage curve and its area. The errors of decisions with equal uncertainty are
        replaced by their mean, so that the order of these decisions does not change the curve.

    Raises:
        InputError: If the shapes differ, if there is no decision, or if a value is not finite.

    Source:
        El-Yaniv and Wiener, On the Foundations of Noise-free Selective Classification, JMLR 2010;
        Geifman and El-Yaniv, Selective Classification for Deep Neural Networks, NeurIPS 2017,
        arXiv:1705.08500.

    Example:
        >>> risk_coverage_of_errors([0.1, 0.3, 0.2], [0, 1, 0]).risk.round(2)
        array([0.  , 0.  , 0.33])
    """
    values = np.asarray(uncertainty, dtype=np.float64)
    errors = np.asarray(error, dtype=np.float64)
    check_shapes(uncertainty=(values, "n"), error=(errors, "n"))
    n_invalid = int((~np.isfinite(values)).sum() + (~np.isfinite(errors)).sum())
    if n_invalid or not values.size:
        raise InputError(
            "A risk-coverage curve needs at least one decision, and finite uncertainties and "
            f"errors; got {format_count(values.size, 'decision')} with "
            f"{format_count(n_invalid, 'NaN or infinite value')}. Leave out decisions with NaN or "
            "infinite values."
        )
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    risk = _risk_coverage_running_mean((np.bincount(group, errors) / size).repeat(size))
    coverage = np.arange(1, len(risk) + 1) / len(risk)
    return RiskCoverageCurve(
        coverage,
        risk,
        float(risk.mean()),
        float(_risk_coverage_running_mean(np.sort(errors)).mean()),
    )


def _risk_coverage_running_mean(values: Array) -> Array:
    """Return the running mean: the mean of the first k values, for each k."""
    means: Array = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means
