"""Find the labels that captions mention, and generate sentences from prompt templates."""

from surelabel.data.text_labels.caption_labels import (
    label_captioned_images,
    label_captions,
    labels_without_captions,
)
from surelabel.data.text_labels.sentences import template_sentences

__all__ = [
    "label_captioned_images",
    "label_captions",
    "labels_without_captions",
    "template_sentences",
]
