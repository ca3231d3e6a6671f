"""Resolve, encode and align the inputs of a recognizer: images or precomputed features."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from surelabel.data import align_to_vocabulary, find_images
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import EncodedImages, FeatureCache, normalize_precomputed_vectors
from surelabel.methods import METHODS
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.user_warnings import warn_unannotated_labels
from surelabel.records import Images, LabelledFeatures, LabelledImages

LabelledInput = LabelledImages | LabelledFeatures
RecognizerInput = Images | LabelledInput | str | Path | Sequence[str | Path] | npt.NDArray[Any]


def resolve_recognizer_input(source: RecognizerInput) -> Images | LabelledInput:
    """Convert an input to ``Images``, ``LabelledImages`` or ``LabelledFeatures``.

    A folder, an image file, a .txt file with paths, or a sequence of paths is converted to
    ``Images``. A numeric array is converted to ``LabelledFeatures`` without labels.

    Raises:
        DataError: If ``source`` is a single path and no image is found there.
        InputError: If a numeric array does not have one finite vector per row.
    """
    if isinstance(source, Images | LabelledImages | LabelledFeatures):
        return source
    if isinstance(source, str | Path):
        return Images(find_images([source]))
    if isinstance(source, np.ndarray) and source.dtype.kind in "biuf":
        n_rows = len(source) if source.ndim else 0
        return LabelledFeatures(source, (), np.zeros((n_rows, 0)))
    return Images([str(path) for path in source])


def encode_recognizer_input(
    source: Images | LabelledInput,
    method: Any,
    encoder: Encoder,
    cache: FeatureCache,
    **options: Any,
) -> EncodedImages:
    """Return the features that a method needs, from images or precomputed features.

    If an image has fewer views than other images, each missing view is replaced by the pooled
    vector of the image.

    Raises:
        ConfigError: If ``source`` contains precomputed features, and the method also needs other
            features than pooled features.
        DataError: If no image can be read, or if ``strict`` is True and any image cannot be read.
    """
    if isinstance(source, LabelledFeatures):
        check_recognizer_vector_inputs(method)
        return normalize_precomputed_vectors(source.features, width=encoder.width)
    paths = [str(path) for path in source.paths]
    return extract_features(paths, method, encoder, cache=cache, **options)


def encode_recognizer_pil_inputs(
    images: Sequence[Image.Image], method: Any, encoder: Encoder
) -> EncodedImages:
    """Encode PIL images without a cache and return the features that a method needs."""
    return extract_features(images, method, encoder)


def check_recognizer_vector_inputs(method: Any) -> None:
    """Check that a method needs only pooled features.

    Raises:
        ConfigError: If the method needs patches, views or other features of images.
    """
    needs = [need for need in method.needs if need != "pixels"]
    if needs:
        name = next((n for n, entry in METHODS.items() if entry is type(method)), "This method")
        raise ConfigError(
            f"{name} requires images (it needs: {', '.join(needs)}); got precomputed features. "
            "Give image files, or use a method of pooled features, such as "
            "method.name=zero_shot or linear."
        )


def align_recognizer_input_labels(
    source: LabelledInput, names: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> LabelledImages:
    """Return the labelled images with one target column per label in ``names``.

    A label of ``source`` matches a label in ``names`` if they share an alias.

    Raises:
        InputError: If ``source`` has no labels, or no label in ``names``.
    """
    if not isinstance(source, LabelledImages | LabelledFeatures):
        raise InputError(
            "Labels are required, as LabelledImages or LabelledFeatures; got "
            f"{type(source).__name__}, which has no labels. Give annotated images."
        )
    labelled = LabelledImages(source.paths, source.names, source.targets, source.known)
    aligned, _ = align_to_vocabulary(labelled, names, aliases)
    warn_unannotated_labels(names, aligned.known)
    return aligned
