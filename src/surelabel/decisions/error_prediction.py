"""Measure how well an uncertainty predicts the errors of decisions."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.decisions.error_detection import error_auroc
from surelabel.decisions.risk_coverage import RiskCoverageCurve, risk_coverage_of_errors
from surelabel.decisions.uncertainty_bins import (
    UNCERTAINTY_BINS,
    UncertaintyBins,
    bin_by_uncertainty,
    spearman_correlation,
)

RISK_COVERAGE = 0.8  # fraction of kept decisions at which the risk is reported


@dataclass(frozen=True)
class ErrorPrediction:
    """Agreement of an uncertainty with the errors of decisions.

    Attributes:
        uncertainty: Uncertainty of each decision, ``(n,)``.
        auroc: Probability that an error is more uncertain than a correct decision, in [0, 1]. If
            all decisions are correct or all are wrong, the value is NaN.
        risk_coverage: Risk-coverage curve of the decisions, with the area under the curve.
        risk_at_80: Error rate if the most uncertain decisions, at most 20 %, are left out.
        spearman: Spearman correlation of uncertainty and accuracy over decisions, in [-1, 1], or
            NaN if one of them is constant.
        bins: Accuracy in ten bins of equal size. If there are fewer decisions than bins, the value
            is None.
    """

    uncertainty: Array
    auroc: float
    risk_coverage: RiskCoverageCurve
    risk_at_80: float
    spearman: float
    bins: UncertaintyBins | None

    def as_dict(self) -> dict[str, object]:
        """Return the metrics and, if they are computed, the bins as a JSON-compatible dict."""
        metrics: dict[str, object] = {
            "auroc": self.auroc,
            "aurc": self.risk_coverage.area,
            "optimal_aurc": self.risk_coverage.optimal_area,
            "risk_at_80": self.risk_at_80,
            "spearman": self.spearman,
        }
        if self.bins is not None:
            metrics["bins"] = {
                "uncertainty": self.bins.uncertainty.tolist(),
                "accuracy": self.bins.accuracy.tolist(),
                "decisions_per_bin": self.bins.decisions_per_bin,
                "left_out": self.bins.n_left_out,
                "pearson_with_index": self.bins.pearson_with_index,
                "pearson_with_uncertainty": self.bins.pearson_with_uncertainty,
                "spearman": self.bins.spearman,
            }
        return metrics


def evaluate_error_prediction(
    uncertainty: npt.ArrayLike, is_correct: npt.ArrayLike
) -> ErrorPrediction:
    """Compute how well an uncertainty predicts the errors of decisions.

    Args:
        uncertainty: Finite uncertainty of n decisions, ``(n,)``.
        is_correct: True for correct decisions, ``(n,)``.

    Raises:
        InputError: If the shapes differ, if there is no decision, or if an uncertainty is not
            finite.

    Example:
        >>> prediction = evaluate_error_prediction([0.1, 0.2, 0.3], [True, True, False])
        >>> prediction.auroc, round(prediction.risk_coverage.area, 3), prediction.bins
        (1.0, 0.111, None)
    """
    values = np.asarray(uncertainty, dtype=np.float64)
    correct = np.asarray(is_correct, dtype=bool)
    curve = risk_coverage_of_errors(values, ~correct)
    has_bins = len(values) >= UNCERTAINTY_BINS
    return ErrorPrediction(
        uncertainty=values,
        auroc=error_auroc(values, ~correct),
        risk_coverage=curve,
        risk_at_80=curve.risk_at(RISK_COVERAGE),
        spearman=spearman_correlation(values, correct),
        bins=bin_by_uncertainty(values, correct) if has_bins else None,
    )
