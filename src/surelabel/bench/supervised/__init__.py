"""This package compares methods by the number of labelled images that they are fitted on."""

from surelabel.bench.comparison import BenchComparison
from surelabel.bench.supervised.figures import plot_supervised_curves
from surelabel.bench.supervised.page import supervised_paragraphs
from surelabel.bench.supervised.plan import FULL, QUICK, SupervisedPlan
from surelabel.bench.supervised.results import measure_supervised_results
from surelabel.bench.supervised.scene_splits import load_supervised_scene_splits

SUPERVISED = BenchComparison(
    "supervised",
    FULL,
    QUICK,
    measure_supervised_results,
    supervised_paragraphs,
    figures={"supervised.png": plot_supervised_curves},
)

__all__ = ["SUPERVISED", "SupervisedPlan", "load_supervised_scene_splits"]
