"""Localize labels in images: heat maps of a method, or similarities of patches and labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from surelabel.encoders import Encoder, prompt_templates
from surelabel.errors import ConfigError, InputError, UnknownName
from surelabel.evaluation import RegionMaps
from surelabel.features import FeatureCache, encode_image_files
from surelabel.methods import patch_scores
from surelabel.methods.text_scoring.text_scorer import encode_with_synonyms
from surelabel.recognizer.feature_extraction import required_feature_kinds
from surelabel.recognizer.inputs import LabelledInput, encode_input
from surelabel.records import Array, Features, Images, LabelledFeatures

if TYPE_CHECKING:
    from surelabel.recognizer.recognizer import Recognizer

IMAGES_PER_BLOCK = 16  # images whose heat maps of all labels are in memory


@dataclass(frozen=True)
class HeatMaps:
    """Heat maps of images, one for each label.

    Attributes:
        paths: Paths of the images that could be read, length n.
        maps: Raw scores of each label in each region, ``(n, c, down, across)``.
        region_weights: Weight of each region in the score of the image, ``(n, down, across)``;
            None if all regions have the same weight.
        similarities: Cosine similarities of adapted regions and label texts,
            ``(n, c, down, across)``; None for methods without regions in the joint space.
    """

    paths: list[str]
    maps: Array
    region_weights: Array | None = None
    similarities: Array | None = None


@torch.no_grad()
def compute_heat_maps(
    source: Images | LabelledInput, method: Any, encoder: Encoder, cache: FeatureCache
) -> HeatMaps:
    """Return the heat maps of a method; of patches of the encoder if the method has none.

    Raises:
        InputError: If ``source`` holds precomputed features.
        ConfigError: If the method has no heat maps, and the encoder no patches in the joint
            space.
    """
    if isinstance(source, LabelledFeatures):
        raise InputError(
            "Localization requires images; got precomputed features. Give image files."
        )
    paths = [str(path) for path in source.paths]
    if hasattr(method, "heat_maps"):
        encoded = encode_input(source, method, encoder, cache)
        return HeatMaps(
            [paths[row] for row in encoded.rows],
            _to_array(method.heat_maps(encoded.features)),
            _optional_maps(method, "presence_maps", encoded.features),
            _optional_maps(method, "similarity_maps", encoded.features),
        )
    check_localization_support(method, encoder)
    encoded = encode_image_files(
        encoder.with_dense_image_size(), paths, kind=encoder.patch_kinds[0], cache=cache
    )
    scores = _patch_scores(method, encoded.features)
    return HeatMaps([paths[row] for row in encoded.rows], _to_grid(scores, encoded.features))


def check_localization_support(method: Any, encoder: Encoder) -> None:
    """Refuse a method and an encoder without heat maps.

    Raises:
        ConfigError: If the method has no heat maps, and the encoder no patches in the joint
            space.
    """
    if not hasattr(method, "heat_maps") and not encoder.patch_kinds:
        raise ConfigError(
            f"Localization requires patch features in the joint space; {encoder.name} has none. "
            "Use an encoder that has them, such as ViT-B-16/openai."
        )


@torch.no_grad()
def frozen_encoder_maps(
    paths: list[str], names: list[str], encoder: Encoder, cache: FeatureCache
) -> Array | None:
    """Return cosine similarities of the frozen patches and the labels, ``(n, c, down, across)``.

    Return None if the encoder has no plain patches.

    Raises:
        DataError: If an image cannot be read.
    """
    if "patches" not in encoder.patch_kinds:
        return None
    encoded = encode_image_files(
        encoder.with_dense_image_size(), paths, kind="patches", cache=cache, strict=True
    )
    assert encoded.features.patches is not None
    texts = encode_with_synonyms(encoder, names, prompt_templates("one"))
    return _to_grid(encoded.features.patches @ texts.T, encoded.features)


def _optional_maps(method: Any, function: str, features: Features) -> Array | None:
    """Return the maps that a function of the method computes; None if it has no such function."""
    return _to_array(getattr(method, function)(features)) if hasattr(method, function) else None


def _patch_scores(method: Any, features: Features) -> Tensor:
    """Return scores of patches ``(n, p, c)``.

    A method that needs more than pooled features scores patches with its text scorer alone.
    """
    if required_feature_kinds(method) != ["images"] and hasattr(method, "text_scorer"):
        scores: Tensor = method.text_scorer(features.patches)
        return scores
    return patch_scores(method, features)


def _to_grid(scores: Tensor, features: Features) -> Array:
    """Reshape scores of patches ``(n, p, c)`` to maps ``(n, c, down, across)``."""
    return _to_array(scores.transpose(1, 2).unflatten(2, features.grid or ()))


def _to_array(values: Tensor) -> Array:
    return values.cpu().numpy().astype(np.float64)


def check_can_localize(recognizer: "Recognizer") -> None:
    """Refuse a recognizer without heat maps, before any image is read.

    Raises:
        ConfigError: If its method has no heat maps, and its encoder no patches in the joint
            space.
    """
    check_localization_support(recognizer.method, recognizer.encoder)


def localize_labels(
    recognizer: "Recognizer", labels_by_path: Mapping[str, Sequence[str]]
) -> dict[str, RegionMaps]:
    """Return region maps of selected labels for each image.

    For a method with its own heat maps, the similarities of the frozen encoder are included.

    Args:
        recognizer: Recognizer whose method has heat maps, or whose encoder has patches.
        labels_by_path: Labels to localize, by the path of the image.

    Returns:
        Region maps by the path of the image, for the images that could be read.

    Raises:
        UnknownName: If a label is not a label of the recognizer.
        ConfigError: If the method has no heat maps, and the encoder no patches in the joint
            space.
    """
    check_can_localize(recognizer)
    _check_labels(recognizer.names, labels_by_path)
    paths, region_maps = list(labels_by_path), dict[str, RegionMaps]()
    for start in range(0, len(paths), IMAGES_PER_BLOCK):
        block = paths[start : start + IMAGES_PER_BLOCK]
        region_maps |= _localize_block(recognizer, {path: labels_by_path[path] for path in block})
    return region_maps


def _check_labels(names: Sequence[str], labels_by_path: Mapping[str, Sequence[str]]) -> None:
    """Refuse labels that the recognizer does not have.

    Raises:
        UnknownName: If a label is not in ``names``.
    """
    for path, labels in labels_by_path.items():
        for label in labels:
            if label not in names:
                raise UnknownName(
                    f"Labels to localize must be labels of the recognizer; got {label!r} for "
                    f"{path}. Use one of its {len(names)} labels, such as {names[0]!r}, or call "
                    "with_names first."
                )


def _localize_block(
    recognizer: "Recognizer", labels_by_path: Mapping[str, Sequence[str]]
) -> dict[str, RegionMaps]:
    """Return region maps of some images, whose heat maps fit into memory together."""
    encoder, cache = recognizer.encoder, recognizer.cache
    heat_maps = compute_heat_maps(Images(list(labels_by_path)), recognizer.method, encoder, cache)
    names = np.array(recognizer.names)
    column_of = {name: column for column, name in enumerate(recognizer.names)}
    frozen = None
    if hasattr(recognizer.method, "heat_maps"):
        frozen = frozen_encoder_maps(heat_maps.paths, recognizer.names_with_aliases, encoder, cache)

    def select_labels(row: int, maps: Array | None) -> dict[str, Array]:
        """Return the maps of the selected labels of one image; empty for no maps."""
        if maps is None:
            return {}
        labels = labels_by_path[heat_maps.paths[row]]
        return {label: maps[row, column_of[label]].copy() for label in labels}

    weights = heat_maps.region_weights
    return {
        path: RegionMaps(
            maps=select_labels(row, heat_maps.maps),
            strongest_labels=names[heat_maps.maps[row].argmax(axis=0)],
            crop_mode=encoder.crop_mode,
            region_weights=None if weights is None else weights[row],
            frozen_similarities=select_labels(row, frozen),
            adapted_similarities=select_labels(row, heat_maps.similarities),
        )
        for row, path in enumerate(heat_maps.paths)
    }
