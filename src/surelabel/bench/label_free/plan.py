"""Define methods, student variants, sizes and settings of the label-free comparison."""

from dataclasses import dataclass
from typing import Any

from surelabel.config import Choice


@dataclass(frozen=True)
class LabelFreePlan:
    """Sizes and settings of the label-free comparison.

    Attributes:
        unlabelled: Number of unlabelled images for fitting and calibration.
        validation: Number of annotated validation images, on which the best row with one encoder
            pass is selected and Platt scaling is fitted.
        test: Number of annotated test images.
        probe_images: Number of annotated training images of the linear probe, which is a supervised
            reference.
        student_images: Number of unlabelled images on which each student is trained.
        student_epochs: Number of training epochs of each student.
        student_seeds: Number of random seeds for each student variant.
        crop_seeds: Number of seeds of the random crops of the row ``reseeded_crop_count``.
        crop_counts: Numbers of random crops per image (M), one row each.
        reseeded_crop_count: Number of crops per image of the row that is measured with several
            seeds, one of ``crop_counts``.
        correction_top_k: Numbers of labels per image whose scores are increased by a correction of
            pseudo-labels (beta in TailorCLIP), one stage each.
        fusion_margins: Margins of ``max_fusion_with_margin`` (alpha in TailorCLIP), one stage each.
    """

    unlabelled: int = 1000
    validation: int = 300
    test: int = 1000
    probe_images: int = 20_000
    student_images: int = 500
    student_epochs: int = 10
    student_seeds: int = 5
    crop_seeds: int = 5
    crop_counts: tuple[int, ...] = (5, 10, 20, 30)
    reseeded_crop_count: int = 10
    correction_top_k: tuple[int, ...] = (1, 2, 4, 80)
    fusion_margins: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0)


FULL = LabelFreePlan()
QUICK = LabelFreePlan(
    unlabelled=200,
    validation=100,
    test=200,
    probe_images=1500,
    student_images=100,
    student_epochs=2,
    student_seeds=2,
    crop_seeds=2,
    crop_counts=(5,),
    reseeded_crop_count=5,
    correction_top_k=(1, 80),
    fusion_margins=(0.1, 1.0),
)

ONE_PASS_METHODS = {
    "zero-shot": Choice("zero_shot"),
    "zero-shot, 80 templates": Choice("zero_shot", {"templates": "ensemble"}),
    "zero-shot, background": Choice("zero_shot", {"background": "usual"}),
    "zero-shot, softmax": Choice("zero_shot", {"domain": "softmax"}),
    "zero-shot, softmax at a quarter of the scale": Choice("zero_shot", {"domain": "softmax"}),
    "zero-shot, centred": Choice("zero_shot", {"domain": "centred"}),
    "zero-shot, standardized": Choice("zero_shot", {"domain": "standardized"}),
    "standardized over the collection": Choice("standardized"),
}
SCALE_SHARES = {"zero-shot, softmax at a quarter of the scale": 0.25}  # of the encoder's scale
MULTI_PASS_METHODS = {
    "tiles": Choice("tiles"),
    "dense regions": Choice("dense_regions"),
    "region statistics": Choice("region_statistics"),
}
STUDENT_VARIANTS: dict[str, dict[str, Any]] = {  # changed settings by run section
    "default": {},
    "no overlays": {"sewing": {"max_overlays": 0}},
    "no correction": {"pseudolabels": {"top_k": 0}},
    "fixed pseudo-labels": {"sewing": {"label_learning_rate": 0.0}},
    "teacher: 3 × 3 tiles only": {"teacher": {"grids": 1}},
    "no strong view": {"sewing": {"strong_view_weight": 0.0}},
    "up to 3 overlays, p 0.3": {"sewing": {"max_overlays": 3, "overlay_probability": 0.3}},
    "up to 3 overlays, p 0.6": {"sewing": {"max_overlays": 3, "overlay_probability": 0.6}},
    "overlays of 0.45": {"sewing": {"overlay_scale": 0.45}},
    "overlays of 0.85": {"sewing": {"overlay_scale": 0.85}},
    "sewing rule of the paper": {
        "sewing": {"variant": "paper", "max_overlays": 2, "overlay_scale": 0.6}
    },
    "pseudo-labels of CDUL": {"pseudolabels": {"name": "cdul"}},
    "teacher: 20 crops": {"teacher": {"name": "crops", "domain": "softmax"}},
}


def label_free_plan_crops(count: int, seed: int = 0) -> Choice:
    """Return the method ``crops`` with a fixed number of random crops per image.

    Args:
        count: Number of crops per image.
        seed: Seed of the crops.
    """
    return Choice("crops", {"max_crops": count, "patience": 0, "seed": seed})
