"""Reproducible comparisons, with the tables of published papers beside our measurements.

Each comparison has one folder. Code shared by the comparisons is in ``bench``: train, validation
and test splits, a cache of results, resampling, and Markdown tables.
"""

from surelabel.bench.feature_splits import (
    FeatureSplits,
    load_feature_splits,
    load_scene_feature_splits,
)
from surelabel.bench.result_cache import ResultCache

__all__ = ["FeatureSplits", "ResultCache", "load_feature_splits", "load_scene_feature_splits"]
