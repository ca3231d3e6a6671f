"""Immutable records of images, texts, features and predictions, validated on construction.

Axes of arrays: ``n`` images, ``c`` classes, ``d`` feature width, ``w`` tower width, ``p`` patches,
``s`` sentences, ``t`` views.
"""

from surelabel.records.features import Features, FrozenWords, TrainingStep
from surelabel.records.images import Images, LabelledFeatures, LabelledImages, SkippedImage
from surelabel.records.predictions import EncodingStats, Predictions
from surelabel.records.texts import Captions, LabelledTexts

__all__ = [
    "Captions",
    "EncodingStats",
    "Features",
    "FrozenWords",
    "Images",
    "LabelledFeatures",
    "LabelledImages",
    "LabelledTexts",
    "Predictions",
    "SkippedImage",
    "TrainingStep",
]
