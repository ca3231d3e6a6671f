"""Predictions and truth → ``Evaluation``; how many labels are enough → ``Budget``."""

from surelabel.evaluation.before import Before
from surelabel.evaluation.budget import Budget, label_budget
from surelabel.evaluation.coverage import Coverage, coverage
from surelabel.evaluation.examples import Example, Tag
from surelabel.evaluation.intervals import intervals
from surelabel.evaluation.judging import FLOORS, Evaluation, judge, rows_of
from surelabel.evaluation.searching import Searched, search_labelled

__all__ = [
    "FLOORS",
    "Before",
    "Budget",
    "Coverage",
    "Evaluation",
    "Example",
    "Searched",
    "Tag",
    "coverage",
    "intervals",
    "judge",
    "label_budget",
    "rows_of",
    "search_labelled",
]
