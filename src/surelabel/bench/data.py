"""Vectors and labels that methods are compared on, in three parts."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache, collection, default_folder, read_vectors
from surelabel.data.collections import benchmark_scenes
from surelabel.encoding import Progress, encode
from surelabel.errors import DataError
from surelabel.records import LabelledFeatures, LabelledImages

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Material:
    """One data set as one encoder sees it.

    Attributes:
        name: In tables.
        backbone: The encoder, or ``features:WIDTH`` for ready-made vectors.
        train: What heads are fitted on.
        validation: What settings are chosen on and calibrators fitted on.
        test: What is measured on, and nothing is chosen on.
    """

    name: str
    backbone: str
    train: LabelledFeatures
    validation: LabelledFeatures
    test: LabelledFeatures

    @cached_property
    def identity(self) -> str:
        """What tells these vectors and labels from others, whatever they are called."""
        text = hashlib.sha256(self.backbone.encode())
        for part in (self.train, self.validation, self.test):
            for array in (part.features, part.targets, part.known):
                text.update(np.ascontiguousarray(array).tobytes())
        return text.hexdigest()


def of_scenes(encoder: str, *, quick: bool = False, progress: Progress | None = None) -> Material:
    """Scenes of 80 labels through an embedded encoder.

    Args:
        encoder: ``tiny-vit`` or ``tiny-rn``.
        quick: The 3,000 pictures inside the package in place of 35,000 that are drawn once, into
            the cache folder.
        progress: Called with pictures encoded and their total.

    Raises:
        MissingPart: pictures are to be drawn and no colour-emoji font is installed.
    """
    cache, backbone = FeatureCache(default_folder()), load_backbone(encoder)
    parts = []
    for part in PARTS:
        images = _scenes(part, quick)
        seen = encode(backbone, images.paths, cache=cache, strict=True, progress=progress)
        vectors = seen.features.pooled.numpy()
        parts.append(LabelledFeatures(vectors, images.names, images.targets, images.known))
    return Material(f"scenes-80, {encoder}", encoder, *parts)


def _scenes(part: str, quick: bool) -> LabelledImages:
    if quick:
        return collection("scenes-80", split=part)
    return benchmark_scenes(
        "scenes-80", split=part, cache_folder=default_folder() / "scenes"
    ).images


def of_file(path: str | Path) -> Material:
    """Ready-made vectors from a NumPy archive, for those who compare on data of their own.

    Args:
        path: An ``.npz`` as ``read_vectors`` takes it, with all three parts.

    Raises:
        DataError: it cannot be read, or a part is missing.
    """
    found = read_vectors(path)
    missing = [part for part in PARTS if part not in found.parts]
    if missing:
        raise DataError(
            f"{path} must name a part for each row (train, validation or test), and none may be "
            f"empty. Missing: {', '.join(missing)}."
        )
    width = found.whole.features.shape[1]
    return Material(Path(path).stem, f"features:{width}", *(found.parts[p] for p in PARTS))
