"""What is measured, and how much work that is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from surelabel.config import Choice

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """How much work is done.

    Attributes:
        unlabelled: Pictures to adapt to.
        validation: Labelled pictures to choose the best row on.
        test: Labelled pictures to measure on.
        labelled: Pictures with all their labels, of the linear probe that sets the ceiling.
        taught: Unlabelled pictures of each student.
        epochs: Passes of each student.
        students: Of each kind, one a seed.
        seeds: Draws of crops.
        crops: Numbers of crops (M).
        redrawn: Of these, the one whose crops are drawn anew for each seed.
        corrected: Numbers of labels a picture that are raised (beta).
        margins: Of the fusion by a maximum (alpha).
    """

    unlabelled: int = 1000
    validation: int = 300
    test: int = 1000
    labelled: int = 20_000
    taught: int = 500
    epochs: int = 10
    students: int = 5
    seeds: int = 5
    crops: tuple[int, ...] = (5, 10, 20, 30)
    redrawn: int = 10
    corrected: tuple[int, ...] = (1, 2, 4, 80)
    margins: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0)


FULL = Plan()
QUICK = Plan(
    unlabelled=200,
    validation=100,
    test=200,
    labelled=1500,
    taught=100,
    epochs=2,
    students=2,
    seeds=2,
    crops=(5,),
    redrawn=5,
    corrected=(1, 80),
    margins=(0.1, 1.0),
)

ONE_PASS = {
    "zero-shot": Choice("zero_shot"),
    "zero-shot, 80 templates": Choice("zero_shot", {"templates": "ensemble"}),
    "zero-shot, background": Choice("zero_shot", {"background": "usual"}),
    "zero-shot, softmax": Choice("zero_shot", {"domain": "softmax"}),
    "zero-shot, softmax at a quarter of the scale": Choice("zero_shot", {"domain": "softmax"}),
    "zero-shot, centred": Choice("zero_shot", {"domain": "centred"}),
    "zero-shot, standardised": Choice("zero_shot", {"domain": "standardised"}),
    "standardised over the archive": Choice("standardised"),
}
COOLER = {"zero-shot, softmax at a quarter of the scale": 0.25}  # share of the encoder's own scale
SEVERAL_PASSES = {
    "tiles": Choice("tiles"),
    "dense regions": Choice("dense_regions"),
    "region statistics": Choice("region_statistics"),
}
STUDENTS: dict[str, dict[str, Any]] = {  # section of a run → what differs there
    "as it is": {},
    "no pictures sewn on": {"sewing": {"overlays": 0}},
    "no correction": {"pseudolabels": {"top": 0}},
    "labels that do not learn": {"sewing": {"rate": 0.0}},
    "3 × 3 tiles alone as teacher": {"teacher": {"grids": 1}},
    "no strong view": {"sewing": {"strong": 0.0}},
    "up to 3 overlays, p 0.3": {"sewing": {"overlays": 3, "chance": 0.3}},
    "up to 3 overlays, p 0.6": {"sewing": {"overlays": 3, "chance": 0.6}},
    "overlays of 0.45": {"sewing": {"side": 0.45}},
    "overlays of 0.85": {"sewing": {"side": 0.85}},
    "rule of the paper": {"sewing": {"variant": "paper", "overlays": 2, "side": 0.6}},
    "labels of CDUL": {"pseudolabels": {"name": "cdul"}},
    "20 crops as teacher": {"teacher": {"name": "crops", "domain": "softmax"}},
}


def crops(count: int, seed: int = 0) -> Choice:
    """Exactly so many random crops a picture, so that cost and result are of one number."""
    return Choice("crops", {"count": count, "patience": 0, "seed": seed})
