"""Features and targets of a dataset in three splits: train, validation and test."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from surelabel.data import collection, read_feature_archive
from surelabel.data.bundled_collections import benchmark_scenes
from surelabel.encoders import load_encoder
from surelabel.errors import DataError
from surelabel.features import FeatureCache, Progress, default_cache_folder, encode_image_files
from surelabel.records import LabelledFeatures, LabelledImages

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class FeatureSplits:
    """Features of one dataset from one encoder, in three splits.

    Attributes:
        name: Title in tables.
        encoder: Name of the encoder, or ``features:WIDTH`` for precomputed features.
        train: Split for the fitting of heads.
        validation: Split for the selection of settings and the fitting of calibrators.
        test: Split for the measurements; nothing is selected on it.
    """

    name: str
    encoder: str
    train: LabelledFeatures
    validation: LabelledFeatures
    test: LabelledFeatures

    @cached_property
    def fingerprint(self) -> str:
        """Hash of encoder, features and targets; independent of the title."""
        digest = hashlib.sha256(self.encoder.encode())
        for split in (self.train, self.validation, self.test):
            for array in (split.features, split.targets, split.known):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def load_scene_features(
    encoder: str, *, quick: bool = False, progress: Progress | None = None
) -> FeatureSplits:
    """Encode scenes of 80 labels with an embedded encoder.

    Args:
        encoder: ``tiny-vit`` or ``tiny-rn``.
        quick: Use the 3,000 images inside the package instead of 35,000 images, which are drawn
            once, into the cache folder.
        progress: Called with the number of encoded images and the total.

    Raises:
        MissingPart: If images must be drawn and no colour-emoji font is installed.
    """
    cache, loaded_encoder = FeatureCache(default_cache_folder()), load_encoder(encoder)
    splits = []
    for split in SPLITS:
        images = _load_scene_images(split, quick)
        encoded = encode_image_files(
            loaded_encoder, images.paths, cache=cache, strict=True, progress=progress
        )
        features = encoded.features.pooled.numpy()
        splits.append(LabelledFeatures(features, images.names, images.targets, images.known))
    return FeatureSplits(f"scenes-80, {encoder}", encoder, *splits)


def _load_scene_images(split: str, quick: bool) -> LabelledImages:
    if quick:
        return collection("scenes-80", split=split)
    return benchmark_scenes(
        "scenes-80", split=split, cache_folder=default_cache_folder() / "scenes"
    ).images


def load_feature_splits(path: str | Path) -> FeatureSplits:
    """Load precomputed features from a NumPy archive.

    Args:
        path: ``.npz`` file in the format of `read_feature_archive`, with all three splits.

    Raises:
        DataError: If the file cannot be read or a split is missing.
    """
    archive = read_feature_archive(path)
    missing = [split for split in SPLITS if split not in archive.splits]
    if missing:
        raise DataError(
            f"{path} must name a part for each row (train, validation or test), and no part may be "
            f"empty. Missing: {', '.join(missing)}. Add rows of these parts."
        )
    width = archive.all_rows.features.shape[1]
    return FeatureSplits(
        Path(path).stem, f"features:{width}", *(archive.splits[split] for split in SPLITS)
    )
