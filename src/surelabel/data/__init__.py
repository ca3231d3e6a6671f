"""Pictures, labels and scenes from disk; features and predictions kept there."""

from surelabel.data.cache import FeatureCache, default_folder
from surelabel.data.collections import COLLECTIONS, collection
from surelabel.data.domains import DOMAINS
from surelabel.data.generate import read_scenes, write_scenes
from surelabel.data.labels import FORMATS, align, read_labels
from surelabel.data.pictures import open_picture, upright
from surelabel.data.predictions import check_suffix, read_predictions, write_predictions
from surelabel.data.sources import checked_names, find_pictures, read_names
from surelabel.data.vectors import Vectors, read_vectors
from surelabel.data.vocabularies import VOCABULARIES, Vocabulary, divided, without_unseen

__all__ = [
    "COLLECTIONS",
    "DOMAINS",
    "FORMATS",
    "VOCABULARIES",
    "FeatureCache",
    "Vectors",
    "Vocabulary",
    "align",
    "check_suffix",
    "checked_names",
    "collection",
    "default_folder",
    "divided",
    "find_pictures",
    "open_picture",
    "read_labels",
    "read_names",
    "read_predictions",
    "read_scenes",
    "read_vectors",
    "upright",
    "without_unseen",
    "write_predictions",
    "write_scenes",
]
