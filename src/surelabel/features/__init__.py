"""This package computes image and text features, with an on-disk cache."""

from surelabel.features.cache import CacheStatus, FeatureCache, default_feature_cache_folder
from surelabel.features.feature_kinds import ladder_feature_kind
from surelabel.features.image_features import EncodedImages, encode_image_files
from surelabel.features.in_memory import encode_images_in_memory, name_of_image_in_memory
from surelabel.features.mapped_features import FeatureRows, MappedFeatures
from surelabel.features.precomputed_vectors import normalize_precomputed_vectors
from surelabel.features.question_features import centre_question_vectors, encode_questions
from surelabel.features.sentence_features import (
    SentenceFeatures,
    encode_sentence_block_features,
    encode_sentence_features,
)
from surelabel.features.text_features import (
    add_text_feature_cache,
    without_text_feature_cache,
)
from surelabel.features.view_features import EncodedViews, encode_views

__all__ = [
    "CacheStatus",
    "EncodedImages",
    "EncodedViews",
    "FeatureCache",
    "FeatureRows",
    "MappedFeatures",
    "SentenceFeatures",
    "add_text_feature_cache",
    "centre_question_vectors",
    "default_feature_cache_folder",
    "encode_image_files",
    "encode_images_in_memory",
    "encode_questions",
    "encode_sentence_block_features",
    "encode_sentence_features",
    "encode_views",
    "ladder_feature_kind",
    "name_of_image_in_memory",
    "normalize_precomputed_vectors",
    "without_text_feature_cache",
]
