"""Immutable records of images, features, targets and predictions, validated on construction.

Axes of arrays: ``n`` images, ``c`` classes, ``d`` feature width, ``w`` tower width, ``p`` patches,
``t`` views.
"""

from surelabel.records.features import Features, TrainingStep
from surelabel.records.images import Images, LabelledFeatures, LabelledImages, SkippedImage
from surelabel.records.predictions import EncodingStats, Predictions

__all__ = [
    "EncodingStats",
    "Features",
    "Images",
    "LabelledFeatures",
    "LabelledImages",
    "Predictions",
    "SkippedImage",
    "TrainingStep",
]
