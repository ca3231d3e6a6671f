"""No labels at all: what can be had without training, and what adapting to pictures adds."""

from surelabel.bench.label_free.all import measure_all
from surelabel.bench.label_free.pictures import Pictures, of_scenes
from surelabel.bench.label_free.plan import FULL, QUICK, Plan

__all__ = ["FULL", "QUICK", "Pictures", "Plan", "measure_all", "of_scenes"]
