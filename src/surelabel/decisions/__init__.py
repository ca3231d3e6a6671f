"""This package selects thresholds on calibrated probabilities and evaluates decisions.

``record_validation(logits, targets, known) -> ValidationRecord`` counts the predicted, correct and
missed labels of a recognizer on validation images, at many thresholds. From this record,
``OPERATING_POINTS[name](record, *, settings) -> Thresholds`` computes one threshold per label and
``GUARANTEES[name](record, *, settings) -> Guarantee`` computes one threshold with a risk guarantee.
To add an entry, add one line to the table in ``operating_points.py`` or ``guarantees.py``.
"""

from surelabel.decisions.claim_selection import accept_claims, fewest_calibration_images
from surelabel.decisions.conformal_selection import (
    benjamini_hochberg,
    benjamini_yekutieli,
    conformal_p_values,
)
from surelabel.decisions.error_detection import error_auroc
from surelabel.decisions.guarantee_result import Guarantee
from surelabel.decisions.guarantees import (
    GUARANTEES,
    at_most_missed,
    at_most_missed_on_average,
    at_most_wrong,
)
from surelabel.decisions.label_thresholds import Thresholds
from surelabel.decisions.operating_points import (
    OPERATING_POINTS,
    cost_operating_point,
    expected_count_operating_point,
    f1_operating_point,
    precision_operating_point,
    recall_operating_point,
)
from surelabel.decisions.risk_coverage import (
    RiskCoverageCurve,
    compute_risk_coverage,
    risk_coverage_of_errors,
)
from surelabel.decisions.uncertainty_bins import (
    UncertaintyBins,
    bin_by_uncertainty,
    pearson_correlation,
    spearman_correlation,
)
from surelabel.decisions.validation_record import ValidationRecord, record_validation

__all__ = [
    "GUARANTEES",
    "OPERATING_POINTS",
    "Guarantee",
    "RiskCoverageCurve",
    "Thresholds",
    "UncertaintyBins",
    "ValidationRecord",
    "accept_claims",
    "at_most_missed",
    "at_most_missed_on_average",
    "at_most_wrong",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "bin_by_uncertainty",
    "compute_risk_coverage",
    "conformal_p_values",
    "cost_operating_point",
    "error_auroc",
    "expected_count_operating_point",
    "f1_operating_point",
    "fewest_calibration_images",
    "pearson_correlation",
    "precision_operating_point",
    "recall_operating_point",
    "record_validation",
    "risk_coverage_of_errors",
    "spearman_correlation",
]
