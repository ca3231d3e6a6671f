"""Losses, maps, label pairs and calibrators: whose probabilities can be trusted."""

from surelabel.bench.calibrated.all import measure_all
from surelabel.bench.calibrated.measuring import measure
from surelabel.bench.calibrated.plan import FULL, QUICK, Plan
from surelabel.bench.calibrated.results import Results

__all__ = ["FULL", "QUICK", "Plan", "Results", "measure", "measure_all"]
