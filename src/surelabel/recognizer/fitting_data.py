"""Compute the training data of a fit: features and targets of labelled images or texts."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from surelabel.counts import format_count
from surelabel.data import align_to_vocabulary, template_sentences
from surelabel.encoders import Encoder, prompt_templates
from surelabel.errors import InputError
from surelabel.features import FeatureCache, encode_sentence_features
from surelabel.mapped_arrays import to_mapped_array
from surelabel.methods import Method
from surelabel.progress import Progress
from surelabel.recognizer.fitting import FittingData
from surelabel.recognizer.fitting_features import encode_fitting_features
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.user_warnings import (
    warn_labels_without_positives,
    warn_labels_without_texts,
    warn_skipped_images,
    warn_targets_without_contrast,
)
from surelabel.records import LabelledImages, LabelledTexts
from surelabel.training import check_training_batch_targets, feature_batch_tensors


def encode_fitting_data(
    source: LabelledInput,
    labelled: LabelledImages,
    method: Method,
    encoder: Encoder,
    cache: FeatureCache,
    *,
    progress: Progress | None = None,
) -> FittingData:
    """Return features and targets of labelled images; unreadable images are left out.

    Args:
        source: Images or precomputed features of n images.
        labelled: The same images, with one target column per label of the recognizer, ``(n, c)``.
        method: Method to fit.
        encoder: Encoder of the images.
        cache: Cache of features.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        DataError: If no image can be read.
        InputError: If no readable image has a known target. If no image has a known target, the
            error is raised before any image is read.
    """
    check_training_batch_targets(torch.from_numpy(to_mapped_array(labelled.known)))
    encoded = encode_fitting_features(source, method, encoder, cache, progress=progress)
    warn_skipped_images(encoded.skipped, len(source))
    targets = torch.from_numpy(to_mapped_array(labelled.targets[encoded.rows], dtype=np.float32))
    known = torch.from_numpy(to_mapped_array(labelled.known[encoded.rows]))
    check_training_batch_targets(known)
    warn_labels_without_positives(labelled.names, targets, known)
    warn_targets_without_contrast(targets, known)
    paths = [labelled.paths[row] for row in encoded.rows]
    return FittingData(paths, encoded.features, targets, known, encoded.rows)


def encode_text_fitting_data(
    source: LabelledTexts,
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
    encoder: Encoder,
    *,
    progress: Progress | None = None,
) -> FittingData:
    """Return features and targets of texts, followed by those of sentences from prompt templates.

    Each label has one sentence for each prompt template of the sets ``one`` and ``ensemble``, in
    which only this label is positive.

    Args:
        source: Texts with labels.
        names: Labels of the recognizer, length c.
        aliases: Mapping from labels to all their spellings.
        encoder: Encoder of the texts.
        progress: Function called with the number of encoded sentences and the number of all.

    Raises:
        InputError: If ``source`` has no label in ``names``.
    """
    labelled = LabelledImages(source.texts, source.names, source.targets, source.known)
    aligned, _ = align_to_vocabulary(labelled, names, aliases)
    if not aligned.known.any():
        raise InputError(
            f"The texts must have at least one label of the recognizer ({', '.join(names[:3])}, "
            f"…); got {format_count(len(source), 'text')} with the labels "
            f"{', '.join(source.names[:3])}. Label the texts with data.label_captions and the "
            "labels of the recognizer."
        )
    warn_labels_without_texts(names, aligned.targets)
    templates = (*prompt_templates("one"), *prompt_templates("ensemble"))
    sentences = template_sentences(names, templates)
    texts = [*source.texts, *sentences.texts]
    features = encode_sentence_features(encoder, texts, progress=progress)
    targets, known = feature_batch_tensors(
        np.concatenate([aligned.targets, sentences.targets]),
        np.concatenate([aligned.known, sentences.known]),
    )
    return FittingData(texts, features, targets, known)
