"""Train, validation and test images of the label-free comparison."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelabel.bench.label_free.plan import LabelFreePlan
from surelabel.data.bundled_collections import (
    benchmark_collection_scenes,
    bundled_collection_folder,
)
from surelabel.data.scene_files import AnnotatedScenes, read_scenes
from surelabel.features import default_feature_cache_folder
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class LabelFreeSplits:
    """One image collection with annotations for the evaluation of label-free methods.

    Attributes:
        name: Title of the image collection in tables.
        encoder: Name of the encoder of all methods.
        train: Training images. Their targets are used only to fit the linear probe and to evaluate
            pseudo-labels.
        validation: Images on which the best row with one encoder pass is selected, and on which
            Platt scaling and the calibrator of the linear probe are fitted.
        test: Test images, used for the measurements.
        main_columns: Column index of the label of the main object in each test image, ``(n,)``. If
            the collection does not have this label, the index is -1.
    """

    name: str
    encoder: str
    train: LabelledImages
    validation: LabelledImages
    test: LabelledImages
    main_columns: npt.NDArray[np.int64]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the encoder name, the image paths and the targets."""
        digest = hashlib.sha256(self.encoder.encode())
        for split in (self.train, self.validation, self.test):
            digest.update("\n".join(split.paths).encode())
            digest.update(np.ascontiguousarray(split.targets).tobytes())
        return digest.hexdigest()


def load_label_free_scene_splits(
    encoder: str, plan: LabelFreePlan, *, quick: bool = False
) -> LabelFreeSplits:
    """Load generated images (scenes) with 80 labels for an embedded encoder.

    Args:
        encoder: Name of an embedded encoder: ``tiny-vit`` or ``tiny-rn``.
        plan: Plan with the number of images of each split.
        quick: If True, use the images inside the package instead of images rendered into the cache
            folder.
    """
    scenes = {
        split: _load_label_free_scene_split(split, quick)
        for split in ("train", "validation", "test")
    }
    images = {split: annotated.images for split, annotated in scenes.items()}
    columns = {name: column for column, name in enumerate(images["test"].names)}
    main_columns = np.array([columns.get(label, -1) for label in scenes["test"].main_labels])
    return LabelFreeSplits(
        name=f"scenes-80, {encoder}",
        encoder=encoder,
        train=images["train"].take(range(min(plan.probe_images, len(images["train"])))),
        validation=images["validation"].take(range(plan.validation)),
        test=images["test"].take(range(plan.test)),
        main_columns=main_columns[: plan.test],
    )


def _load_label_free_scene_split(split: str, quick: bool) -> AnnotatedScenes:
    if quick:
        return read_scenes(bundled_collection_folder("scenes-80", split=split))
    return benchmark_collection_scenes(
        "scenes-80", split=split, cache_folder=default_feature_cache_folder() / "scenes"
    )
