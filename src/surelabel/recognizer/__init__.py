"""Define the recognizer, and functions to tag, evaluate, localize and index images."""

from surelabel.recognizer.active_learning import label_next
from surelabel.recognizer.annotation_batch import AnnotationBatch
from surelabel.recognizer.auto_labelling import AutoLabelCount, AutoLabels, auto_label
from surelabel.recognizer.comparison import compare
from surelabel.recognizer.evaluation_run import basic_evaluation_run, evaluate
from surelabel.recognizer.guaranteed_search import GuaranteedSearch, search_with_guarantee
from surelabel.recognizer.index_queries import query_encoder
from surelabel.recognizer.index_recognizer import recognizer_of_index
from surelabel.recognizer.index_rescoring import rescore_index
from surelabel.recognizer.indexing import (
    IndexUpdate,
    index_images_with_recognizer,
    read_calibration_for_indexing,
    read_names_for_indexing,
    restore_calibration_for_indexing,
)
from surelabel.recognizer.inputs import LabelledInput, RecognizerInput
from surelabel.recognizer.label_audit import LabelAudit, SuspectedError, audit
from surelabel.recognizer.method_selection import select_method
from surelabel.recognizer.method_selection_record import MethodResult, MethodSelection
from surelabel.recognizer.model_resolution import resolve_model
from surelabel.recognizer.pair_scoring import PairScores, score_pairs
from surelabel.recognizer.prediction_blocks import images_per_prediction_block
from surelabel.recognizer.prediction_indexing import index_prediction_folder
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.region_localization import (
    check_recognizer_can_localize,
    localize_labels,
)
from surelabel.recognizer.shard_tagging import predict_image_shard
from surelabel.recognizer.tagging import (
    select_tags,
    shown_label_mask,
    tag,
)
from surelabel.recognizer.threshold_selection import guarantee, operating_point
from surelabel.recognizer_folder_checks import check_saved_recognizer_folder

__all__ = [
    "AnnotationBatch",
    "AutoLabelCount",
    "AutoLabels",
    "GuaranteedSearch",
    "IndexUpdate",
    "LabelAudit",
    "LabelledInput",
    "MethodResult",
    "MethodSelection",
    "PairScores",
    "Recognizer",
    "RecognizerInput",
    "SuspectedError",
    "audit",
    "auto_label",
    "basic_evaluation_run",
    "check_recognizer_can_localize",
    "check_saved_recognizer_folder",
    "compare",
    "evaluate",
    "guarantee",
    "images_per_prediction_block",
    "index_images_with_recognizer",
    "index_prediction_folder",
    "label_next",
    "localize_labels",
    "operating_point",
    "predict_image_shard",
    "query_encoder",
    "read_calibration_for_indexing",
    "read_names_for_indexing",
    "recognizer_of_index",
    "rescore_index",
    "resolve_model",
    "restore_calibration_for_indexing",
    "score_pairs",
    "search_with_guarantee",
    "select_method",
    "select_tags",
    "shown_label_mask",
    "tag",
]
