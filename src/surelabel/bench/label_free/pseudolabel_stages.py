"""Measure mAP and rank inversions of pseudo-labels after each processing stage."""

from typing import Any

import torch
from torch import Tensor

from surelabel.bench.label_free.plan import LabelFreePlan
from surelabel.bench.label_free.rows import mean_average_precision
from surelabel.bench.label_free.scene_splits import LabelFreeSplits, LabelFreeTask
from surelabel.config import Choice, Run
from surelabel.methods import UsesViews
from surelabel.pseudolabels import (
    CORRECTIONS,
    rank_inversions_within_images,
    rank_inversions_within_labels,
)
from surelabel.recognizer import Recognizer
from surelabel.recognizer.inputs import encode_recognizer_input
from surelabel.records import Images
from surelabel.views import FUSIONS, max_fusion_with_margin

TEACHERS = {
    "3 × 3 tiles": Choice("tiles", {"domain": "softmax"}),
    "20 crops": Choice("crops", {"domain": "softmax", "patience": 0}),
}


def measure_pseudolabel_stages(task: LabelFreeTask) -> list[dict[str, Any]]:
    """Evaluate the pseudo-labels of each teacher and stage with the targets of the training images.

    Args:
        task: Images, plan and cache.

    Returns:
        One entry for each stage with ``teacher``, ``stage`` and ``map``. Entries before and after a
        correction also contain the numbers of inverted pairs, ``within_images`` and
        ``within_labels``.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan, stages = task.dataset, task.plan, []
    for title, teacher in TEACHERS.items():

        def compute(title: str = title, teacher: Choice = teacher) -> list[dict[str, Any]]:
            return [
                {"teacher": title} | stage
                for stage in _pseudolabel_stages_of_teacher(images, plan, teacher)
            ]

        key = ("stages", images.fingerprint, teacher, plan)
        stages += task.cache.load_or_compute(*key, compute=compute)
    return stages


def _pseudolabel_stages_of_teacher(
    images: LabelFreeSplits, plan: LabelFreePlan, teacher: Choice
) -> list[dict[str, Any]]:
    """Return one entry for each stage of one teacher."""
    train = images.train.take(range(min(plan.student_images, len(images.train))))
    targets = torch.from_numpy(train.targets)
    scores = _view_scores_of_pseudolabel_stages(images, teacher, train.paths)

    def measure(stage: str, logits: Tensor, *, with_inversions: bool = False) -> dict[str, Any]:
        entry = {
            "stage": stage,
            "map": mean_average_precision(logits.double().numpy(), train.targets, train.known),
        }
        return entry | (
            _count_pseudolabel_stage_inversions(logits, targets) if with_inversions else {}
        )

    whole, parts = scores[:, 0], scores[:, 1:]
    fused = max_fusion_with_margin(whole, parts)
    stages = [measure("whole image", whole), measure("best part", parts.amax(dim=1))]
    stages += [
        measure(f"maximum, margin {margin:g}", max_fusion_with_margin(whole, parts, margin=margin))
        for margin in plan.fusion_margins
    ]
    stages += [measure(rule, FUSIONS[rule](whole, parts)) for rule in FUSIONS]
    stages.append(measure("before correction", fused, with_inversions=True))
    for name, correct in CORRECTIONS.items():
        for top_k in (k for k in plan.correction_top_k if k <= len(train.names)):
            corrected = correct(fused, top_k=top_k)
            stages.append(measure(f"{name}, β {top_k}", corrected, with_inversions=True))
    return stages


@torch.no_grad()
def _view_scores_of_pseudolabel_stages(
    images: LabelFreeSplits, teacher: Choice, paths: Any
) -> Tensor:
    """Return the teacher's log-odds for the whole image and for each view, ``(n, 1 + t, c)``."""
    run = Run(encoder=Choice(images.encoder), method=teacher, calibrator=Choice("beta"))
    recognizer = Recognizer(run, images.train.names)
    encoded = encode_recognizer_input(
        Images(paths), recognizer.method, recognizer.encoder, recognizer.cache
    )
    assert isinstance(recognizer.method, UsesViews)  # true for all teachers
    return recognizer.method.view_scores(encoded.features)


def _count_pseudolabel_stage_inversions(scores: Tensor, targets: Tensor) -> dict[str, float]:
    """Return the numbers of rank inversions within images and within labels, over all images."""
    return {
        "within_images": float(rank_inversions_within_images(scores, targets).double().sum()),
        "within_labels": float(rank_inversions_within_labels(scores, targets).double().sum()),
    }
