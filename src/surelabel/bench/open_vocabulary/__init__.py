"""Comparison of open-vocabulary methods on unseen classes, with ablations of Recover and Match."""

from surelabel.bench.open_vocabulary.comparison import (
    open_vocabulary_comparison_workload,
    write_open_vocabulary_comparison,
)
from surelabel.bench.open_vocabulary.plan import FULL, QUICK, OpenVocabularyPlan
from surelabel.bench.open_vocabulary.scene_splits import (
    OpenVocabularySplits,
    load_open_vocabulary_scene_splits,
)

__all__ = [
    "FULL",
    "QUICK",
    "OpenVocabularyPlan",
    "OpenVocabularySplits",
    "load_open_vocabulary_scene_splits",
    "open_vocabulary_comparison_workload",
    "write_open_vocabulary_comparison",
]
