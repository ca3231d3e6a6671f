"""Comparison of label-free methods: untrained methods, and students trained on pseudo-labels."""

from surelabel.bench.label_free.comparison import write_label_free_comparison
from surelabel.bench.label_free.plan import FULL, QUICK, LabelFreePlan
from surelabel.bench.label_free.scene_splits import LabelFreeSplits, load_label_free_scene_splits

__all__ = [
    "FULL",
    "QUICK",
    "LabelFreePlan",
    "LabelFreeSplits",
    "load_label_free_scene_splits",
    "write_label_free_comparison",
]
