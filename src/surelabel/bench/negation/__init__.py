"""This package compares scores for queries with an excluded label, such as `a & !b`."""

from surelabel.bench.comparison import BenchComparison
from surelabel.bench.negation.page import negation_paragraphs
from surelabel.bench.negation.plan import FULL, QUICK, NegationPlan
from surelabel.bench.negation.results import measure_negation_results
from surelabel.bench.negation.scene_splits import NegationSplits, load_negation_scenes

NEGATION = BenchComparison("negation", FULL, QUICK, measure_negation_results, negation_paragraphs)

__all__ = ["NEGATION", "NegationPlan", "NegationSplits", "load_negation_scenes"]
