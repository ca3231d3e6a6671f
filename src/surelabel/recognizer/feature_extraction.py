"""Extract the image features that a method needs: whole images, patches and views."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.errors import DataError, NoReadableImage
from surelabel.features import (
    EncodedImages,
    EncodedViews,
    encode_image_files,
    encode_images_in_memory,
    encode_views,
    ladder_feature_kind,
    name_of_image_in_memory,
)
from surelabel.methods import Method, UsesLadder, UsesViews
from surelabel.records import Features, SkippedImage
from surelabel.training import select_feature_batch_rows

# Feature kind of the encoder for each need of a method. Of two kinds of patches, the last is used.
FEATURE_KIND_FOR_NEED = {
    "trunk": "trunk",
    "multi_layer": "multi_layer",
    "attention": "attentive",
    "self_aware": "self_aware",
    "patches": "patches",
}
CHANGED_REASON = "changed while it was being read"

ImageSequence = Sequence[str] | Sequence[Image.Image | bytes]


def extract_features(
    images: ImageSequence, method: Method, encoder: Encoder, *, strict: bool = False, **options: Any
) -> EncodedImages:
    """Encode images and return all features that a method needs.

    Args:
        images: Paths of image files, PIL images, or contents of image files as bytes.
        method: Method with the attributes ``needs`` and ``image_size`` (input size of whole
            images).
        encoder: Encoder of the images.
        strict: Whether to raise an error if an image cannot be read. If False, unreadable images
            are left out.
        options: Options ``cache``, ``workers`` and ``progress`` for encoding image files.

    Raises:
        DataError: If no image can be read, or if ``strict`` is True and any image cannot be read.
    """
    sized_encoder = encoder.with_image_size(method.image_size) if method.image_size else encoder
    first_kind, *other_kinds = feature_extraction_kinds_of_method(method)
    encoded = _extract_whole_image_features(
        images, sized_encoder, first_kind, strict=strict, options=options
    )
    for kind in other_kinds:
        readable = [images[row] for row in encoded.rows]
        other = _extract_whole_image_features(
            readable, sized_encoder, kind, strict=strict, options=options
        )
        encoded = _merge_extracted_feature_kinds(encoded, other, images)
    return _extract_requested_view_features(
        encoded, images, method, encoder, strict=strict, options=options
    )


def feature_extraction_kinds_for_needs(needs: Sequence[str]) -> list[str]:
    """Return the kinds of encoder features that contain all ``needs`` of a method.

    Each kind requires one encoder pass per image. If ``needs`` contains no such features, the only
    kind is ``images``, the vector of the whole image.
    """
    kinds = [kind for need, kind in FEATURE_KIND_FOR_NEED.items() if need in needs]
    if "attentive" in kinds and "self_aware" in kinds:
        kinds.remove("self_aware")  # "attentive" contains the same patches
    return kinds or ["images"]


def feature_extraction_kinds_of_method(method: Method) -> list[str]:
    """Return the feature kinds that a method needs, including those of a ladder adapter."""
    ladder = [ladder_feature_kind(*method.ladder_blocks)] if isinstance(method, UsesLadder) else []
    kinds = feature_extraction_kinds_for_needs(method.needs)
    return [kind for kind in kinds if not ladder or kind != "images"] + ladder


def max_encoder_passes(method: Method) -> int:
    """Return the largest number of encoder passes per image, without encoding an image."""
    return len(feature_extraction_kinds_of_method(method)) + method.max_views


def _extract_whole_image_features(
    images: Any, encoder: Encoder, kind: str, *, strict: bool, options: dict[str, Any]
) -> EncodedImages:
    """Extract the features of one kind that a method needs from image files or PIL images."""
    if len(images) and not isinstance(images[0], str):
        return encode_images_in_memory(encoder, images, kind=kind, strict=strict)
    return encode_image_files(encoder, images, kind=kind, strict=strict, **options)


def _extracted_image_name(images: Any, row: int) -> str:
    """Return the path of an image file, or the name of an image in memory."""
    image = images[row]
    return image if isinstance(image, str) else name_of_image_in_memory(row)


def _merge_extracted_feature_kinds(
    encoded: EncodedImages, other: EncodedImages, images: ImageSequence
) -> EncodedImages:
    """Merge two kinds of features of each image; leave out images whose files changed.

    The attribute ``other.rows`` contains row numbers within ``encoded``.
    """
    pairs = zip(other.rows, other.hashes, strict=True)
    unchanged = np.array([encoded.hashes[row] == other_hash for row, other_hash in pairs])
    changed = [
        SkippedImage(_extracted_image_name(images, encoded.rows[row]), CHANGED_REASON)
        for row in other.rows[~unchanged]
    ]
    merged = _select_rows_of_extracted_features(
        encoded, other.rows[unchanged], [*other.skipped, *changed]
    )
    added = select_feature_batch_rows(other.features, torch.from_numpy(np.flatnonzero(unchanged)))
    added_fields = {k: v for k, v in vars(added).items() if v is not None and k != "pooled"}
    return replace(
        merged,
        features=replace(merged.features, **added_fields),
        n_cached=min(encoded.n_cached, other.n_cached),
        decode_seconds=encoded.decode_seconds + other.decode_seconds,
        model_seconds=encoded.model_seconds + other.model_seconds,
        encoder_passes=merged.encoder_passes + other.encoder_passes[unchanged],
    )


@torch.no_grad()
def _extract_requested_view_features(
    encoded: EncodedImages,
    images: Any,
    method: Method,
    encoder: Encoder,
    *,
    strict: bool,
    options: dict[str, Any],
) -> EncodedImages:
    """Encode views of the images until the method requests no more views.

    Raises:
        DataError: If no image can be read a second time, or if ``strict`` is True and any image
            cannot be read a second time.
    """
    if not isinstance(method, UsesViews):
        return encoded
    while (layout := method.next_views(encoded.features)) is not None:
        remaining = [images[row] for row in encoded.rows]
        names = [_extracted_image_name(images, row) for row in encoded.rows]
        views = encode_views(encoder, remaining, layout, hashes=encoded.hashes, **options)
        if not views.counts.any() and not views.unreadable:
            break  # the layout has no view of any image
        skipped = [SkippedImage(names[row], reason) for row, reason in views.unreadable.items()]
        if skipped and strict:
            raise DataError(f"{skipped[0].path}: {skipped[0].reason}")
        readable = np.setdiff1d(np.arange(len(remaining)), list(views.unreadable))
        encoded = _select_rows_of_extracted_features(
            _append_extracted_view_features(encoded, views), readable, skipped
        )
    return encoded


def _append_extracted_view_features(encoded: EncodedImages, new: EncodedViews) -> EncodedImages:
    """Append new views to the views of each image.

    If an image has fewer views than other images, each missing view is replaced by the pooled
    vector of the image.
    """
    features = encoded.features
    is_view = torch.arange(new.views.shape[1]) < torch.from_numpy(new.counts)[:, None]
    padded = torch.where(is_view[:, :, None], new.views, features.pooled[:, None])
    views = padded if features.views is None else torch.cat([features.views, padded], dim=1)
    n_computed = int((new.counts > 0).sum()) - new.n_cached
    return replace(
        encoded,
        features=replace(features, views=views),
        n_cached=min(encoded.n_cached, len(new.counts) - n_computed),
        decode_seconds=encoded.decode_seconds + new.decode_seconds,
        model_seconds=encoded.model_seconds + new.model_seconds,
        encoder_passes=encoded.encoder_passes + new.counts,
    )


def _select_rows_of_extracted_features(
    encoded: EncodedImages, rows: npt.NDArray[np.int64], skipped: Sequence[SkippedImage]
) -> EncodedImages:
    """Return the encoded images with the row numbers ``rows``, and add skipped images.

    Raises:
        DataError: If ``rows`` is empty.
    """
    if not len(rows):
        raise NoReadableImage(
            "The second pass over the images must read at least one of "
            f"{format_count(len(encoded.rows), 'image')}; no image was readable. The first error: "
            f"{skipped[0].path}: {skipped[0].reason}. Check the disk and run again.",
            [*encoded.skipped, *skipped],
        )
    if len(rows) == len(encoded.rows):
        return encoded
    features: Features = select_feature_batch_rows(encoded.features, torch.from_numpy(rows))
    return replace(
        encoded,
        features=features,
        rows=encoded.rows[rows],
        skipped=(*encoded.skipped, *skipped),
        hashes=tuple(encoded.hashes[row] for row in rows),
        encoder_passes=encoded.encoder_passes[rows],
    )
