"""Localize selected labels: compute the heat map of each selected label in each image."""

from collections.abc import Mapping, Sequence

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.errors import UnknownName
from surelabel.evaluation import RegionMaps
from surelabel.methods import LocalizesLabels
from surelabel.recognizer.localization import (
    check_localization_support,
    compute_localization_maps,
    localization_maps_of_frozen_encoder,
)
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Images

IMAGES_PER_BLOCK = 16  # images whose heat maps of all labels are in memory


def check_recognizer_can_localize(recognizer: Recognizer) -> None:
    """Check that a recognizer can compute heat maps, before any image is read.

    Raises:
        ConfigError: If the method has no heat maps, and the encoder has no patch features in the
            joint space of images and texts.
    """
    check_localization_support(recognizer.method, recognizer.encoder)


def localize_labels(
    recognizer: Recognizer, labels_by_path: Mapping[str, Sequence[str]]
) -> dict[str, RegionMaps]:
    """Return the heat maps of selected labels for each image.

    If the method has heat maps and the encoder has patches, the result also contains cosine
    similarities of label texts and patches of the frozen encoder.

    Args:
        recognizer: Recognizer whose method has heat maps, or whose encoder has patch features.
        labels_by_path: Dictionary from the path of an image to the labels to localize.

    Returns:
        Dictionary from the path of each readable image to the region maps of the image.

    Raises:
        UnknownName: If a label is not a label of the recognizer.
        ConfigError: If the method has no heat maps, and the encoder has no patch features in the
            joint space of images and texts.
        DataError: If none of 16 successive images can be read.
    """
    check_recognizer_can_localize(recognizer)
    _check_labels_to_localize(recognizer.names, labels_by_path)
    paths, region_maps = list(labels_by_path), dict[str, RegionMaps]()
    for start in range(0, len(paths), IMAGES_PER_BLOCK):
        block = paths[start : start + IMAGES_PER_BLOCK]
        region_maps |= _localize_labels_in_block(
            recognizer, {path: labels_by_path[path] for path in block}
        )
    return region_maps


def _check_labels_to_localize(
    names: Sequence[str], labels_by_path: Mapping[str, Sequence[str]]
) -> None:
    """Check that all labels to localize are labels of the recognizer.

    Raises:
        UnknownName: If a label is not in ``names``.
    """
    for path, labels in labels_by_path.items():
        for label in labels:
            if label not in names:
                raise UnknownName(
                    f"Labels to localize must be labels of the recognizer; got {label!r} for "
                    f"{path}. Use one of the {format_count(len(names), 'label')}, such as "
                    f"{names[0]!r}, or call with_names first."
                )


def _localize_labels_in_block(
    recognizer: Recognizer, labels_by_path: Mapping[str, Sequence[str]]
) -> dict[str, RegionMaps]:
    """Return region maps of a block of images, whose heat maps fit into memory."""
    encoder, cache = recognizer.encoder, recognizer.cache
    heat_maps = compute_localization_maps(
        Images(list(labels_by_path)), recognizer.method, encoder, cache
    )
    names = np.array(recognizer.names)
    column_of = {name: column for column, name in enumerate(recognizer.names)}
    frozen = None
    if isinstance(recognizer.method, LocalizesLabels):
        frozen = localization_maps_of_frozen_encoder(
            heat_maps.paths, recognizer.names_with_aliases, encoder, cache
        )

    def select_labels(row: int, maps: Array | None) -> dict[str, Array]:
        """Return the maps of the selected labels; if ``maps`` is None, return no maps."""
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
