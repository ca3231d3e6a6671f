"""Reproducible comparisons, with the tables of published papers beside our measurements.

Each comparison is a subpackage. The modules of ``bench`` itself are shared by the comparisons:
train, validation and test splits, a cache of results, resampling, and Markdown tables.
"""

from surelabel.bench.feature_splits import (
    FeatureSplits,
    load_feature_splits,
    load_scene_feature_splits,
)
from surelabel.bench.result_cache import ResultCache

__all__ = ["FeatureSplits", "ResultCache", "load_feature_splits", "load_scene_feature_splits"]
