"""Trained on some names, asked for others: what each part of "Recover and Match" adds."""

from surelabel.bench.open_vocabulary.all import forecast, measure_all
from surelabel.bench.open_vocabulary.pictures import Pictures, of_scenes
from surelabel.bench.open_vocabulary.plan import FULL, QUICK, Plan

__all__ = ["FULL", "QUICK", "Pictures", "Plan", "forecast", "measure_all", "of_scenes"]
