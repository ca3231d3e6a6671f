"""This package evaluates predictions, and retrieval between images and captions."""

from surelabel.evaluation.calibration_budget import CalibrationBudget, estimate_calibration_budget
from surelabel.evaluation.comparison_result import (
    Comparison,
    LabelDifferences,
    MetricDifference,
)
from surelabel.evaluation.confidence_intervals import evaluation_confidence_intervals
from surelabel.evaluation.cooccurrence import LabelCooccurrence, measure_cooccurrence
from surelabel.evaluation.evaluation_result import (
    NOISE_FLOOR_METRICS,
    Evaluation,
    evaluate_predictions,
    find_label_rows_for_evaluation,
)
from surelabel.evaluation.examples import Example, ExampleLabel
from surelabel.evaluation.label_coverage import LabelCoverage, measure_label_coverage
from surelabel.evaluation.label_errors import (
    ERROR_KINDS,
    MISSING_POSITIVE,
    WRONG_POSITIVE,
    ErrorRates,
    LabelErrors,
    find_label_errors,
)
from surelabel.evaluation.label_uncertainty import (
    LabelUncertainty,
    SelectiveRisk,
    UncertaintyEvaluation,
    evaluate_uncertainties,
)
from surelabel.evaluation.labels_per_image import LabelCounts, count_labels_per_image
from surelabel.evaluation.one_positive_bias import OnePositiveBias, measure_one_positive_bias
from surelabel.evaluation.pair_comparison import compare_pair_evaluations
from surelabel.evaluation.pair_direction import PairDirection
from surelabel.evaluation.pair_evaluation import PairEvaluation, evaluate_pair_scores
from surelabel.evaluation.prediction_comparison import compare_predictions
from surelabel.evaluation.ranking_results import RankingMetrics, RankingResults, TopKMetrics
from surelabel.evaluation.recalibration import (
    MIN_RECALIBRATION_IMAGES,
    Recalibration,
    evaluate_recalibration,
)
from surelabel.evaluation.region_maps import RegionMaps
from surelabel.evaluation.relevance_file_metrics import (
    RelevanceFileMetrics,
    evaluate_relevance_file,
)
from surelabel.evaluation.search_precision import SearchEvaluation, evaluate_search_precision
from surelabel.evaluation.uncalibrated import UncalibratedMetrics
from surelabel.evaluation.unseen_classes import UnseenClassResults, evaluate_unseen_classes

__all__ = [
    "ERROR_KINDS",
    "MIN_RECALIBRATION_IMAGES",
    "MISSING_POSITIVE",
    "NOISE_FLOOR_METRICS",
    "WRONG_POSITIVE",
    "CalibrationBudget",
    "Comparison",
    "ErrorRates",
    "Evaluation",
    "Example",
    "ExampleLabel",
    "LabelCooccurrence",
    "LabelCounts",
    "LabelCoverage",
    "LabelDifferences",
    "LabelErrors",
    "LabelUncertainty",
    "MetricDifference",
    "OnePositiveBias",
    "PairDirection",
    "PairEvaluation",
    "RankingMetrics",
    "RankingResults",
    "Recalibration",
    "RegionMaps",
    "RelevanceFileMetrics",
    "SearchEvaluation",
    "SelectiveRisk",
    "TopKMetrics",
    "UncalibratedMetrics",
    "UncertaintyEvaluation",
    "UnseenClassResults",
    "compare_pair_evaluations",
    "compare_predictions",
    "count_labels_per_image",
    "estimate_calibration_budget",
    "evaluate_pair_scores",
    "evaluate_predictions",
    "evaluate_recalibration",
    "evaluate_relevance_file",
    "evaluate_search_precision",
    "evaluate_uncertainties",
    "evaluate_unseen_classes",
    "evaluation_confidence_intervals",
    "find_label_errors",
    "find_label_rows_for_evaluation",
    "measure_cooccurrence",
    "measure_label_coverage",
    "measure_one_positive_bias",
]
