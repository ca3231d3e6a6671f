"""Read and write images, labels, captions, predictions and generated scenes.

The functions that render images are imported on first use, because they import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from surelabel.data.bundled_collections import COLLECTIONS, collection
from surelabel.data.captioned_scenes import scene_pairs
from surelabel.data.captions import (
    CAPTION_FORMATS,
    detect_caption_format,
    has_captioned_images,
    read_captions,
    read_pairs,
)
from surelabel.data.feature_archives import FeatureArchive, read_feature_archive
from surelabel.data.few_shot_sampling import describe_shots, sample_shots
from surelabel.data.image_memory import image_memory_limit, max_image_memory
from surelabel.data.image_sources import find_images
from surelabel.data.images import open_image, to_upright_rgb_image
from surelabel.data.label_corrections import (
    LabelCorrection,
    correct_labels,
    read_label_corrections,
    write_label_corrections,
)
from surelabel.data.label_names import parse_label_names, read_label_names
from surelabel.data.label_trees import label_tree_as_text, read_label_tree
from surelabel.data.labels import (
    FORMATS,
    PRE_ANNOTATION_WRITERS,
    RowDataset,
    align_to_vocabulary,
    describe_labels,
    label_spellings_to_align,
    read_label_entries,
    read_labels,
)
from surelabel.data.pair_archives import is_pair_archive, read_pair_archive
from surelabel.data.partial_predictions import PartialPredictions, open_partial_predictions
from surelabel.data.prediction_folder_reading import (
    check_prediction_folder_is_complete,
    prediction_folder_blocks,
    read_prediction_folder,
    read_unpredicted_images,
)
from surelabel.data.prediction_part_reading import (
    PartRows,
    find_part_rows,
    finished_prediction_rows,
    prediction_folder_paths,
    read_failed_images,
    read_prediction_part,
)
from surelabel.data.prediction_part_writing import (
    FailedImages,
    write_failed_images,
    write_prediction_part,
)
from surelabel.data.prediction_runs import (
    PredictionRun,
    check_prediction_folder,
    describe_prediction_run,
    is_prediction_folder,
    open_prediction_folder,
    read_prediction_run,
)
from surelabel.data.prediction_shards import (
    ImageCounts,
    ImageShard,
    PredictionFolderStatus,
    blocks_of_image_shard,
    image_shard_options,
    parse_image_shard,
    prediction_folder_status,
    rows_of_image_block,
)
from surelabel.data.prediction_writing import (
    check_predictions_suffix,
    write_prediction_blocks,
    write_predictions,
)
from surelabel.data.predictions import is_prediction_file, read_predictions
from surelabel.data.relevance_files import read_graded_relevance, read_relevance
from surelabel.data.relevant_rows import RelevantRows, relevant_captions, relevant_images
from surelabel.data.scene_files import read_scenes
from surelabel.data.score_tables import (
    add_labels_to_scores,
    join_scores_and_labels,
    read_scores,
    score_table_columns,
)
from surelabel.data.stored_predictions import StoredPredictions, open_predictions
from surelabel.data.text_labels import (
    label_captioned_images,
    label_captions,
    labels_without_captions,
    template_sentences,
)
from surelabel.data.vocabularies import (
    VOCABULARIES,
    Vocabulary,
    remove_unseen_vocabulary_classes,
    split_vocabulary,
)
from surelabel.data.vqa_answers import (
    answer_scores,
    normalize_answer,
    read_vqa_answers,
    score_question_answers,
)
from surelabel.data.xmp_keywords import check_xmp_labels
from surelabel.data.xmp_sidecar_paths import check_sidecars
from surelabel.data.xmp_sidecars import SidecarChanges, remove_sidecar_tags, write_sidecar_tags

if TYPE_CHECKING:
    from surelabel.data.domains import DOMAINS
    from surelabel.data.image_synthesis import synthesize_images
    from surelabel.data.scene_writing import write_scenes

__all__ = [
    "CAPTION_FORMATS",
    "COLLECTIONS",
    "DOMAINS",
    "FORMATS",
    "PRE_ANNOTATION_WRITERS",
    "VOCABULARIES",
    "FailedImages",
    "FeatureArchive",
    "ImageCounts",
    "ImageShard",
    "LabelCorrection",
    "PartRows",
    "PartialPredictions",
    "PredictionFolderStatus",
    "PredictionRun",
    "RelevantRows",
    "RowDataset",
    "SidecarChanges",
    "StoredPredictions",
    "Vocabulary",
    "add_labels_to_scores",
    "align_to_vocabulary",
    "answer_scores",
    "blocks_of_image_shard",
    "check_prediction_folder",
    "check_prediction_folder_is_complete",
    "check_predictions_suffix",
    "check_sidecars",
    "check_xmp_labels",
    "collection",
    "correct_labels",
    "describe_labels",
    "describe_prediction_run",
    "describe_shots",
    "detect_caption_format",
    "find_images",
    "find_part_rows",
    "finished_prediction_rows",
    "has_captioned_images",
    "image_memory_limit",
    "image_shard_options",
    "is_pair_archive",
    "is_prediction_file",
    "is_prediction_folder",
    "join_scores_and_labels",
    "label_captioned_images",
    "label_captions",
    "label_spellings_to_align",
    "label_tree_as_text",
    "labels_without_captions",
    "max_image_memory",
    "normalize_answer",
    "open_image",
    "open_partial_predictions",
    "open_prediction_folder",
    "open_predictions",
    "parse_image_shard",
    "parse_label_names",
    "prediction_folder_blocks",
    "prediction_folder_paths",
    "prediction_folder_status",
    "read_captions",
    "read_failed_images",
    "read_feature_archive",
    "read_graded_relevance",
    "read_label_corrections",
    "read_label_entries",
    "read_label_names",
    "read_label_tree",
    "read_labels",
    "read_pair_archive",
    "read_pairs",
    "read_prediction_folder",
    "read_prediction_part",
    "read_prediction_run",
    "read_predictions",
    "read_relevance",
    "read_scenes",
    "read_scores",
    "read_unpredicted_images",
    "read_vqa_answers",
    "relevant_captions",
    "relevant_images",
    "remove_sidecar_tags",
    "remove_unseen_vocabulary_classes",
    "rows_of_image_block",
    "sample_shots",
    "scene_pairs",
    "score_question_answers",
    "score_table_columns",
    "split_vocabulary",
    "synthesize_images",
    "template_sentences",
    "to_upright_rgb_image",
    "write_failed_images",
    "write_label_corrections",
    "write_prediction_blocks",
    "write_prediction_part",
    "write_predictions",
    "write_scenes",
    "write_sidecar_tags",
]

_RENDERING_MODULES = {
    "DOMAINS": "domains",
    "synthesize_images": "image_synthesis",
    "write_scenes": "scene_writing",
}


def __getattr__(name: str) -> object:
    if name not in _RENDERING_MODULES:
        raise AttributeError(f"module 'surelabel.data' has no attribute {name!r}")
    return getattr(import_module(f"surelabel.data.{_RENDERING_MODULES[name]}"), name)
