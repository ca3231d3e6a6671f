"""Calibration comparison of losses, links, label-pair regularization and calibrators."""

from surelabel.bench.calibrated.comparison import write_calibration_comparison
from surelabel.bench.calibrated.plan import FULL, QUICK, CalibrationPlan
from surelabel.bench.calibrated.results import CalibrationResults
from surelabel.bench.calibrated.run import run_calibrated_measurements

__all__ = [
    "FULL",
    "QUICK",
    "CalibrationPlan",
    "CalibrationResults",
    "run_calibrated_measurements",
    "write_calibration_comparison",
]
