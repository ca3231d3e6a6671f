"""Comparison of open-vocabulary methods on unseen classes: the parts of "Recover and Match"."""

from surelabel.bench.open_vocabulary.comparison import (
    describe_workload,
    write_open_vocabulary_comparison,
)
from surelabel.bench.open_vocabulary.plan import FULL, QUICK, OpenVocabularyPlan
from surelabel.bench.open_vocabulary.scene_splits import (
    OpenVocabularySplits,
    load_open_vocabulary_scenes,
)

__all__ = [
    "FULL",
    "QUICK",
    "OpenVocabularyPlan",
    "OpenVocabularySplits",
    "describe_workload",
    "load_open_vocabulary_scenes",
    "write_open_vocabulary_comparison",
]
