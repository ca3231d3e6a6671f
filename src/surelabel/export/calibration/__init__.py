"""This package exports the calibration of a recognizer as a module for graphs.

``calibration_module`` returns the module of a ``CalibrationRecord``. The table
``CALIBRATOR_MODULES`` contains the function that exports each calibrator. To export a new
calibrator, add one line to that table.
"""

from surelabel.export.calibration.calibrator_modules import (
    CALIBRATOR_MODULES,
    CalibrationModule,
    calibration_module,
    calibrator_module,
)

__all__ = ["CALIBRATOR_MODULES", "CalibrationModule", "calibration_module", "calibrator_module"]
