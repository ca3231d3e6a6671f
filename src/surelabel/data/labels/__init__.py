"""Define annotation formats, each with ``read(path, *, settings) -> LabelledImages``."""

from surelabel.data.labels.resolution.arrow_tables import RowDataset
from surelabel.data.labels.resolution.label_description import describe_labels
from surelabel.data.labels.resolution.label_files import (
    FORMATS,
    PRE_ANNOTATION_WRITERS,
    read_label_entries,
    read_labels,
)
from surelabel.data.labels.resolution.vocabulary_alignment import (
    align_to_vocabulary,
    label_spellings_to_align,
)

__all__ = [
    "FORMATS",
    "PRE_ANNOTATION_WRITERS",
    "RowDataset",
    "align_to_vocabulary",
    "describe_labels",
    "label_spellings_to_align",
    "read_label_entries",
    "read_labels",
]
