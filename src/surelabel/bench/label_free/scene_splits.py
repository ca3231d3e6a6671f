"""Load train, validation and test images of the label-free comparison."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.image_splits import (
    SPLITS,
    EncoderImageSplits,
    ImageSplits,
    load_benchmark_scenes,
)
from surelabel.bench.label_free.plan import LabelFreePlan


@dataclass(frozen=True, kw_only=True)
class LabelFreeSplits(EncoderImageSplits):
    """One image collection with annotations for the evaluation of label-free methods.

    The targets of the training images are used only to fit the linear probe and to evaluate
    pseudo-labels.

    Attributes:
        main_columns: Column index of the label of the main object in each test image, ``(n,)``. If
            the collection does not have this label, the index is -1.
    """

    main_columns: npt.NDArray[np.int64]


LabelFreeTask = ComparisonTask[LabelFreeSplits, LabelFreePlan]


def label_free_splits_of_images(images: EncoderImageSplits) -> LabelFreeSplits:
    """Return annotated images without a main object.

    Args:
        images: Train, validation and test images, with the name of an encoder.
    """
    return LabelFreeSplits(
        name=images.name,
        encoder=images.encoder,
        train=images.train,
        validation=images.validation,
        test=images.test,
        main_columns=np.full(len(images.test), -1),
    )


def label_free_plan_of_images(plan: LabelFreePlan, images: ImageSplits) -> LabelFreePlan:
    """Return the plan with all images of each split, on which all methods are fitted.

    Args:
        plan: Plan of the comparison.
        images: Train, validation and test images.
    """
    n_train = len(images.train)
    return replace(
        plan,
        unlabelled=n_train,
        validation=len(images.validation),
        test=len(images.test),
        probe_images=n_train,
        student_images=n_train,
    )


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
    scenes = {split: load_benchmark_scenes(split, quick=quick) for split in SPLITS}
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
