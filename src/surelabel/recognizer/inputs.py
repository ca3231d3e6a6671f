"""Inputs of a recognizer: images or precomputed features, resolved, encoded and aligned."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from surelabel.data import align_to_vocabulary, find_images
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import EncodedImages, FeatureCache, normalize_precomputed_features
from surelabel.methods import METHODS
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.user_warnings import warn_unannotated_labels
from surelabel.records import Images, LabelledFeatures, LabelledImages

LabelledInput = LabelledImages | LabelledFeatures
RecognizerInput = Images | LabelledInput | str | Path | Sequence[str | Path] | npt.NDArray[Any]


def resolve_input(source: RecognizerInput) -> Images | LabelledInput:
    """Return ``source`` as images or features.

    A folder, an image file, a .txt file with paths, or a sequence of paths become ``Images``. A
    numeric array becomes ``LabelledFeatures`` without labels.

    Raises:
        DataError: If a single path names no images.
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


def encode_input(
    source: Images | LabelledInput,
    method: Any,
    encoder: Encoder,
    cache: FeatureCache,
    **options: Any,
) -> EncodedImages:
    """Return the features that a method needs: encode images, normalize precomputed features.

    An image with fewer views than another one is padded with its pooled vector.

    Raises:
        ConfigError: If the method needs more than pooled features, and ``source`` has no images.
        DataError: If no image can be read, or if ``strict`` is set and an image cannot be read.
    """
    if isinstance(source, LabelledFeatures):
        check_accepts_vectors(method)
        return normalize_precomputed_features(source.features, width=encoder.width)
    paths = [str(path) for path in source.paths]
    return extract_features(paths, method, encoder, cache=cache, **options)


def encode_pil_images(
    images: Sequence[Image.Image], method: Any, encoder: Encoder
) -> EncodedImages:
    """Return the features that a method needs of PIL images, without a cache."""
    return extract_features(images, method, encoder)


def check_accepts_vectors(method: Any) -> None:
    """Refuse a method that needs more than pooled features.

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


def align_input_labels(
    source: LabelledInput, names: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> LabelledImages:
    """Return the labelled images with one column for each of ``names``, matched by any alias.

    Raises:
        InputError: If ``source`` has no labels, or none of ``names``.
    """
    if not isinstance(source, LabelledImages | LabelledFeatures):
        raise InputError(
            "Labels are required, as LabelledImages or LabelledFeatures; got "
            f"{type(source).__name__}, which has none. Give annotated images."
        )
    labelled = LabelledImages(source.paths, source.names, source.targets, source.known)
    aligned, _ = align_to_vocabulary(labelled, names, aliases)
    warn_unannotated_labels(names, aligned.known)
    return aligned
