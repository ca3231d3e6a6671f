"""Predictions and truth → ``Evaluation``; how many labels are enough → ``Budget``."""

from surelabel.evaluation.before import Before
from surelabel.evaluation.budget import Budget, label_budget
from surelabel.evaluation.coverage import Coverage, coverage
from surelabel.evaluation.examples import Example, Tag
from surelabel.evaluation.intervals import intervals
from surelabel.evaluation.judging import FLOORS, Evaluation, judge, rows_of
from surelabel.evaluation.label_counts import LabelCounts, label_counts
from surelabel.evaluation.one_positive import MainAndOthers, main_and_others
from surelabel.evaluation.open_vocabulary import OpenVocabulary, open_vocabulary
from surelabel.evaluation.protocol import AtK, Protocol, Standing
from surelabel.evaluation.regions import Regions
from surelabel.evaluation.searching import Searched, search_labelled
from surelabel.evaluation.together import Together, together

__all__ = [
    "FLOORS",
    "AtK",
    "Before",
    "Budget",
    "Coverage",
    "Evaluation",
    "Example",
    "LabelCounts",
    "MainAndOthers",
    "OpenVocabulary",
    "Protocol",
    "Regions",
    "Searched",
    "Standing",
    "Tag",
    "Together",
    "coverage",
    "intervals",
    "judge",
    "label_budget",
    "label_counts",
    "main_and_others",
    "open_vocabulary",
    "rows_of",
    "search_labelled",
    "together",
]
