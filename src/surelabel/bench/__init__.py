"""Comparisons that anybody can repeat: the papers' tables beside what we measure."""

from surelabel.bench.all import measure_all
from surelabel.bench.calibrated import measure
from surelabel.bench.data import Material, of_file, of_scenes
from surelabel.bench.plan import FULL, QUICK, Plan
from surelabel.bench.results import Results

__all__ = [
    "FULL",
    "QUICK",
    "Material",
    "Plan",
    "Results",
    "measure",
    "measure_all",
    "of_file",
    "of_scenes",
]
