"""Computation of image and text features, with an on-disk cache."""

from surelabel.features.cache import CacheStatus, FeatureCache, default_cache_folder
from surelabel.features.feature_kinds import ladder_kind
from surelabel.features.image_features import EncodedImages, Progress, encode_image_files
from surelabel.features.in_memory import encode_images_in_memory
from surelabel.features.precomputed import normalize_precomputed_features
from surelabel.features.text_features import add_text_cache
from surelabel.features.view_features import EncodedViews, encode_views

__all__ = [
    "CacheStatus",
    "EncodedImages",
    "EncodedViews",
    "FeatureCache",
    "Progress",
    "add_text_cache",
    "default_cache_folder",
    "encode_image_files",
    "encode_images_in_memory",
    "encode_views",
    "ladder_kind",
    "normalize_precomputed_features",
]
