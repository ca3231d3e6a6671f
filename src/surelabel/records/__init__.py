"""This package defines immutable records of images, texts, features and predictions.

Records whose docstring lists errors are validated on construction. The axes of arrays are ``n``
images, ``c`` classes, ``d`` feature width, ``w`` tower width, ``p`` patches, ``s`` sentences and
``t`` views.
"""

from surelabel.records.calibration_description import (
    CalibrationProvenance,
    calibration_provenance,
)
from surelabel.records.encoder_license import EncoderLicense
from surelabel.records.features import Features, FrozenTextVectors, TrainingStep
from surelabel.records.images import Images, LabelledFeatures, LabelledImages, SkippedImage
from surelabel.records.label_tree import (
    NO_PARENT,
    LabelTree,
    descendant_columns,
    order_of_descent,
)
from surelabel.records.noisy_correspondence import noisy_caption_rows
from surelabel.records.pairs import ItemId, PairFeatures, Pairs
from surelabel.records.predictions import (
    UNCERTAINTY_KINDS,
    EncodingStats,
    Predictions,
    check_uncertainty_kind,
)
from surelabel.records.question_answers import QuestionAnswers
from surelabel.records.relevance import Relevance, RowIndices
from surelabel.records.row_selection import RANDOM_ROW, RowSelection
from surelabel.records.scores import SCORE_KINDS, LabelledScores
from surelabel.records.texts import Captions, LabelledTexts

__all__ = [
    "NO_PARENT",
    "RANDOM_ROW",
    "SCORE_KINDS",
    "UNCERTAINTY_KINDS",
    "CalibrationProvenance",
    "Captions",
    "EncoderLicense",
    "EncodingStats",
    "Features",
    "FrozenTextVectors",
    "Images",
    "ItemId",
    "LabelTree",
    "LabelledFeatures",
    "LabelledImages",
    "LabelledScores",
    "LabelledTexts",
    "PairFeatures",
    "Pairs",
    "Predictions",
    "QuestionAnswers",
    "Relevance",
    "RowIndices",
    "RowSelection",
    "SkippedImage",
    "TrainingStep",
    "calibration_provenance",
    "check_uncertainty_kind",
    "descendant_columns",
    "noisy_caption_rows",
    "order_of_descent",
]
