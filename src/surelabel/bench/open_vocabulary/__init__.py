"""This package compares open-vocabulary methods, with ablations of Recover and Match."""

from surelabel.bench.comparison import BenchComparison, json_value_of_one_dataset
from surelabel.bench.open_vocabulary.fitted_rows import fitted_rows_workload
from surelabel.bench.open_vocabulary.page import open_vocabulary_paragraphs
from surelabel.bench.open_vocabulary.plan import FULL, QUICK, OpenVocabularyPlan
from surelabel.bench.open_vocabulary.results import measure_open_vocabulary_results
from surelabel.bench.open_vocabulary.scene_splits import (
    OpenVocabularySplits,
    load_open_vocabulary_scene_splits,
    open_vocabulary_plan_of_images,
    open_vocabulary_splits_of_images,
)

OPEN_VOCABULARY = BenchComparison(
    "open-vocabulary",
    FULL,
    QUICK,
    measure_open_vocabulary_results,
    open_vocabulary_paragraphs,
    json_value=json_value_of_one_dataset,
)

__all__ = [
    "OPEN_VOCABULARY",
    "OpenVocabularyPlan",
    "OpenVocabularySplits",
    "fitted_rows_workload",
    "load_open_vocabulary_scene_splits",
    "open_vocabulary_plan_of_images",
    "open_vocabulary_splits_of_images",
]
