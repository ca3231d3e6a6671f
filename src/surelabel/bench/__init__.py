"""This package runs reproducible comparisons, with tables of published papers beside our results.

Each comparison is a subpackage, whose ``__init__`` defines a `BenchComparison`. The modules of
``bench`` contain the code that the comparisons share. They run and write comparisons, split
datasets, cache results, collect values for each seed in rows, compute resampled metrics, and write
Markdown. The files ``base_new_*.py`` contain few-shot fits on base labels, and their evaluation on
base and new labels.

A new comparison consists of at most five files:

- ``plan.py``: rows, sizes and settings of the complete and of the quick comparison;
- ``results.py``: dataclass of the results, and the function that measures them for a
  `ComparisonTask`;
- ``page.py``: Markdown paragraphs, with the columns of the tables and the conclusions;
- ``__init__.py``: the `BenchComparison` with these parts;
- ``cli/bench.py``: the command, made with ``comparison_command``.
"""

from surelabel.bench.comparison import BenchComparison, ComparisonTask, write_comparison
from surelabel.bench.feature_splits import (
    FeatureSplits,
    encode_feature_splits,
    load_feature_splits,
    load_scene_feature_splits,
)
from surelabel.bench.image_splits import ImageSplits
from surelabel.bench.protocol_splits import load_protocol_image_splits
from surelabel.bench.result_cache import ResultCache

__all__ = [
    "BenchComparison",
    "ComparisonTask",
    "FeatureSplits",
    "ImageSplits",
    "ResultCache",
    "encode_feature_splits",
    "load_feature_splits",
    "load_protocol_image_splits",
    "load_scene_feature_splits",
    "write_comparison",
]
