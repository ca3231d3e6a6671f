"""Reproducible comparisons: the tables of published papers beside our measurements.

Each comparison has one folder. Shared code is in this folder: train, validation and test splits, a
cache of results, resampling, and Markdown tables.
"""

from surelabel.bench.feature_splits import FeatureSplits, load_feature_splits, load_scene_features
from surelabel.bench.result_cache import ResultCache

__all__ = ["FeatureSplits", "ResultCache", "load_feature_splits", "load_scene_features"]
