"""How good pseudo-labels are, stage by stage, and what each correction does to their order."""

from typing import Any

import torch
from torch import Tensor

from surelabel.bench.cells import Cells
from surelabel.bench.label_free.pictures import Pictures
from surelabel.bench.label_free.plan import Plan
from surelabel.bench.label_free.rows import RANK
from surelabel.config import Choice, Run
from surelabel.pseudolabels import (
    CORRECTIONS,
    inversions_within_labels,
    inversions_within_pictures,
)
from surelabel.recognizer import Recognizer
from surelabel.recognizer.sources import encoded
from surelabel.records import Images
from surelabel.views import FUSIONS, max_with_margin

TEACHERS = {
    "3 × 3 tiles": Choice("tiles", {"domain": "softmax"}),
    "20 crops": Choice("crops", {"domain": "softmax", "patience": 0}),
}


def stages(pictures: Pictures, plan: Plan, cells: Cells) -> list[dict[str, Any]]:
    """One entry a stage of each teacher, on the unlabelled pictures against their hidden labels.

    Returns:
        ``teacher``, ``stage`` and ``map``; for corrections the share of pairs in the wrong order,
        ``within_pictures`` and ``within_labels``.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    found = []
    for title, teacher in TEACHERS.items():
        key = ("stages", pictures.identity, teacher, plan)

        def work(title: str = title, teacher: Choice = teacher) -> list[dict[str, Any]]:
            return [{"teacher": title} | one for one in _of(pictures, plan, teacher)]

        found += cells.value(*key, otherwise=work)
    return found


def _of(pictures: Pictures, plan: Plan, teacher: Choice) -> list[dict[str, Any]]:
    train = pictures.train.take(range(min(plan.taught, len(pictures.train))))
    targets = torch.from_numpy(train.targets)
    scores = _said(pictures, teacher, train.paths)

    def stage(name: str, said: Tensor, *, ordered: bool = False) -> dict[str, Any]:
        one = {"stage": name, "map": RANK(said.double().numpy(), train.targets, train.known)}
        return one | (_inversions(said, targets) if ordered else {})

    whole, parts = scores[:, 0], scores[:, 1:]
    fused = max_with_margin(whole, parts)
    found = [stage("whole picture", whole), stage("best part", parts.amax(dim=1))]
    found += [
        stage(f"maximum, margin {margin:g}", max_with_margin(whole, parts, margin=margin))
        for margin in plan.margins
    ]
    found += [stage(rule, FUSIONS[rule](whole, parts)) for rule in FUSIONS]
    found.append(stage("before correction", fused, ordered=True))
    for name, correct in CORRECTIONS.items():
        for top in (t for t in plan.corrected if t <= len(train.names)):
            corrected = correct(fused, top=top)
            found.append(stage(f"{name}, β {top}", corrected, ordered=True))
    return found


@torch.no_grad()
def _said(pictures: Pictures, teacher: Choice, paths: Any) -> Tensor:
    """Log-odds of the whole picture and of each part, ``(n, 1 + t, c)``."""
    run = Run(backbone=Choice(pictures.encoder), method=teacher)
    one = Recognizer(run, pictures.train.names)
    found = encoded(Images(paths), one.method, one.backbone, one.cache)
    scores: Tensor = one.method.of_views(found.features)
    return scores


def _inversions(scores: Tensor, targets: Tensor) -> dict[str, float]:
    """Pairs of a present and an absent label in the wrong order, a picture and a label."""
    return {
        "within_pictures": float(inversions_within_pictures(scores, targets).double().sum()),
        "within_labels": float(inversions_within_labels(scores, targets).double().sum()),
    }
