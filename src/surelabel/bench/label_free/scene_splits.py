"""Load train, validation and test images of the label-free comparison."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.image_splits import SPLITS, EncoderImageSplits, load_benchmark_scenes
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
