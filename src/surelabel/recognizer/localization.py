"""Localize labels in images: heat maps of a method, or similarities of patches and labels."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from surelabel.arrays import Array
from surelabel.encoders import Encoder, prompt_templates
from surelabel.errors import ConfigError, InputError
from surelabel.features import FeatureCache, encode_image_files
from surelabel.methods import (
    LocalizesLabels,
    MatchesRegions,
    Method,
    score_patches_with_any_method,
)
from surelabel.methods.text_scoring.text_scorer import encode_synonyms_for_text_scorer
from surelabel.recognizer.inputs import LabelledInput, encode_recognizer_input
from surelabel.records import Features, Images, LabelledFeatures


@dataclass(frozen=True)
class HeatMaps:
    """Heat maps of images, with one heat map per label.

    Attributes:
        paths: Paths of the images that could be read, length n.
        maps: Raw scores of each of c labels in each region, ``(n, c, down, across)``, for a grid of
            ``down`` rows and ``across`` columns.
        region_weights: Weight of each region in the score of the image, ``(n, down, across)``. If
            None, all regions have the same weight.
        similarities: Cosine similarities of label texts and the region features of the fitted
            method, with the shape of ``maps``. If None, the method does not compute such
            similarities.
    """

    paths: list[str]
    maps: Array
    region_weights: Array | None = None
    similarities: Array | None = None


@torch.no_grad()
def compute_localization_maps(
    source: Images | LabelledInput, method: Method, encoder: Encoder, cache: FeatureCache
) -> HeatMaps:
    """Return the heat maps of a method, or of encoder patches if the method has no heat maps.

    Raises:
        InputError: If ``source`` contains precomputed features.
        ConfigError: If the method has no heat maps, and the encoder has no patch features in the
            joint space of images and texts.
        DataError: If no image can be read.
    """
    if isinstance(source, LabelledFeatures):
        raise InputError(
            "Localization requires images; got precomputed features. Give image files."
        )
    paths = [str(path) for path in source.paths]
    if isinstance(method, LocalizesLabels):
        encoded = encode_recognizer_input(source, method, encoder, cache)
        features = encoded.features
        heat_maps = HeatMaps(
            [paths[row] for row in encoded.rows],
            _localization_tensor_to_array(method.heat_maps(features)),
        )
        if not isinstance(method, MatchesRegions):
            return heat_maps
        return replace(
            heat_maps,
            region_weights=_localization_tensor_to_array(method.presence_maps(features)),
            similarities=_localization_tensor_to_array(method.similarity_maps(features)),
        )
    check_localization_support(method, encoder)
    encoded = encode_image_files(
        encoder.with_dense_image_size(), paths, kind=encoder.patch_kinds[0], cache=cache
    )
    scores = score_patches_with_any_method(method, encoded.features)
    return HeatMaps(
        [paths[row] for row in encoded.rows],
        _patch_scores_to_localization_maps(scores, encoded.features),
    )


def check_localization_support(method: Method, encoder: Encoder) -> None:
    """Check that the method or the encoder can compute heat maps.

    Raises:
        ConfigError: If the method has no heat maps, and the encoder has no patch features in the
            joint space of images and texts.
    """
    if not isinstance(method, LocalizesLabels) and not encoder.patch_kinds:
        raise ConfigError(
            "Localization requires patch features in the joint space of images and texts; "
            f"{encoder.name} does not compute such features. Use an encoder with patch features, "
            "such as ViT-B-16/openai."
        )


@torch.no_grad()
def localization_maps_of_frozen_encoder(
    paths: list[str], names: list[str], encoder: Encoder, cache: FeatureCache
) -> Array | None:
    """Return cosine similarities of patches of the frozen encoder and label texts.

    The shape is ``(n, c, down, across)`` for n images, c labels, and a grid of ``down`` rows and
    ``across`` columns of patches. If the encoder has no patches of the kind ``patches``, return
    None.

    Raises:
        DataError: If an image cannot be read.
    """
    if "patches" not in encoder.patch_kinds:
        return None
    encoded = encode_image_files(
        encoder.with_dense_image_size(), paths, kind="patches", cache=cache, strict=True
    )
    assert encoded.features.patches is not None
    texts = encode_synonyms_for_text_scorer(encoder, names, prompt_templates("one"))
    return _patch_scores_to_localization_maps(encoded.features.patches @ texts.T, encoded.features)


def _patch_scores_to_localization_maps(scores: Tensor, features: Features) -> Array:
    """Reshape scores ``(n, p, c)`` of p patches to maps with a grid, ``(n, c, down, across)``."""
    return _localization_tensor_to_array(scores.transpose(1, 2).unflatten(2, features.grid or ()))


def _localization_tensor_to_array(values: Tensor) -> Array:
    return values.cpu().numpy().astype(np.float64)
