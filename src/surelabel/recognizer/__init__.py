"""Recognizer: fit, calibrate, predict, save, load; with tagging, evaluation and indexing."""

from surelabel.recognizer.evaluation_run import evaluate, predict_and_evaluate
from surelabel.recognizer.indexing import IndexUpdate, index_images, read_index_names
from surelabel.recognizer.inputs import LabelledInput, RecognizerInput
from surelabel.recognizer.localization import check_can_localize, localize_labels
from surelabel.recognizer.model_resolution import resolve_model
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.saving import check_output_folder
from surelabel.recognizer.tagging import check_tag_options, select_tags, tag
from surelabel.recognizer.threshold_selection import guarantee, operating_point

__all__ = [
    "IndexUpdate",
    "LabelledInput",
    "Recognizer",
    "RecognizerInput",
    "check_can_localize",
    "check_output_folder",
    "check_tag_options",
    "evaluate",
    "guarantee",
    "index_images",
    "localize_labels",
    "operating_point",
    "predict_and_evaluate",
    "read_index_names",
    "resolve_model",
    "select_tags",
    "tag",
]
