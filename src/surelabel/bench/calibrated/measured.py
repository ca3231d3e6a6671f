"""The rows of the table: each reading measured on the test pictures."""

from typing import Any

from scipy.special import expit

from surelabel.bench.calibrated.plan import SHOWN
from surelabel.bench.calibrated.reads import Read
from surelabel.bench.calibrated.results import Row
from surelabel.bench.cells import Cells, digest
from surelabel.bench.data import Material
from surelabel.config import Run
from surelabel.evaluation import FLOORS
from surelabel.metrics import POOLED, RANKING, noise_floor
from surelabel.records import Array, LabelledFeatures

DRAWS = 5  # of targets, for each noise floor


def row(read: Read, material: Material, cells: Cells) -> Row:
    """What a reading's fits reach on the test pictures, one value a fit."""
    test = material.test

    def measured() -> dict[str, list[float]]:
        found = [
            values(p, raw, test, SHOWN) | _floors(expit(p), test)
            for p, raw in zip(read.logits, read.scores, strict=True)
        ]
        return {name: [one[name] for one in found] for name in found[0]}

    key = ("row", material.identity, digest(*read.logits, *read.scores), SHOWN)
    return Row(read.title, read.head, _chosen(read.run), cells.value(*key, otherwise=measured))


def values(
    logits: Array, scores: Array, test: LabelledFeatures, names: tuple[str, ...]
) -> dict[str, float]:
    """Metrics of one fit; rankings go by the raw scores, since a map may tie what they tell."""
    p = expit(logits)
    return {
        name: POOLED[name](scores if name in RANKING else p, test.targets, test.known)
        for name in names
    }


def _floors(p: Array, test: LabelledFeatures) -> dict[str, float]:
    return {
        f"{name}_by_chance": float(noise_floor(POOLED[name], p, test.known, draws=DRAWS))
        for name in FLOORS
    }


def _chosen(run: Run) -> dict[str, Any]:
    chosen = {"learning_rate": run.learning_rate, "weight_decay": run.weight_decay}
    return chosen | ({"regularizer_weight": run.regularizer_weight} if run.regularizer else {})
