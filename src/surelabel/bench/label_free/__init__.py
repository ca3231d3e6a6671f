"""This package compares label-free methods: untrained methods and students on pseudo-labels."""

from surelabel.bench.comparison import BenchComparison
from surelabel.bench.label_free.page import label_free_paragraphs
from surelabel.bench.label_free.plan import FULL, QUICK, LabelFreePlan
from surelabel.bench.label_free.results import measure_label_free_results
from surelabel.bench.label_free.scene_splits import (
    LabelFreeSplits,
    label_free_plan_of_images,
    label_free_splits_of_images,
    load_label_free_scene_splits,
)

LABEL_FREE = BenchComparison(
    "label-free", FULL, QUICK, measure_label_free_results, label_free_paragraphs
)

__all__ = [
    "LABEL_FREE",
    "LabelFreePlan",
    "LabelFreeSplits",
    "label_free_plan_of_images",
    "label_free_splits_of_images",
    "load_label_free_scene_splits",
]
