"""This package compares calibration: losses, links, label-pair regularization and calibrators."""

from surelabel.bench.calibrated.curves import plot_calibrated_curves
from surelabel.bench.calibrated.page import calibrated_tables_as_published, calibration_paragraphs
from surelabel.bench.calibrated.plan import FULL, QUICK, CalibrationPlan
from surelabel.bench.calibrated.results import measure_calibration_results
from surelabel.bench.comparison import BenchComparison

CALIBRATED = BenchComparison(
    "calibrated",
    FULL,
    QUICK,
    measure_calibration_results,
    calibration_paragraphs,
    appendix=calibrated_tables_as_published(),
    figures={"curves.png": plot_calibrated_curves},
)

__all__ = ["CALIBRATED", "CalibrationPlan"]
