"""The rows of the table: every method measured on the test pictures, whose labels it never saw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.backbones import load_backbone
from surelabel.bench.cells import Cells, digest
from surelabel.bench.label_free.pictures import Pictures
from surelabel.bench.label_free.plan import COOLER, ONE_PASS, SEVERAL_PASSES, Plan, crops
from surelabel.bench.label_free.scored import Scored
from surelabel.calibration import Platt
from surelabel.config import Choice, Run
from surelabel.evaluation import main_and_others
from surelabel.metrics import POOLED, bootstrap, noise_floor, paired_bootstrap
from surelabel.records import Array

DRAWS = 200  # of test pictures, for each interval
RANKED = ("mean_average_precision", "mean_average_precision_per_image")
FEW = 100  # labelled pictures, for those who have some
PLATT_DRAWS = 5  # of these
HONEST = ("brier_skill", "log_loss", "ece", "ece_of_candidates")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        title: What it is.
        values: Metric → one value a seed.
        interval: Of its mean average precision over test pictures, first seed.
        gain: Of the same over the best one-pass row; None for that row itself.
    """

    title: str
    values: dict[str, list[float]]
    interval: tuple[float, float]
    gain: tuple[float, float, float] | None = None

    def mean(self, metric: str) -> float:
        """Over seeds."""
        return mean(self.values[metric])


def runs(pictures: Pictures, plan: Plan, seed: int) -> dict[str, list[Run]]:
    """Title → one run a seed."""
    scale = _scale(pictures)
    choices = ONE_PASS | SEVERAL_PASSES
    found = {title: [_run(pictures, choice, seed)] for title, choice in choices.items()}
    for title, share in COOLER.items():
        warm = choices[title]
        cool = Choice(warm.name, warm.settings | {"scale": share * scale})
        found[title] = [_run(pictures, cool, seed)]
    for count in plan.crops:
        drawn = range(seed, seed + (plan.seeds if count == plan.redrawn else 1))
        found[f"crops, M = {count}"] = [_run(pictures, crops(count, s), seed) for s in drawn]
    student = replace(_run(pictures, Choice("tailor"), seed), epochs=plan.epochs)
    found["cut and sew"] = [replace(student, seed=seed + s) for s in range(plan.students)]
    found["linear probe, all labels"] = [_run(pictures, Choice("linear"), seed)]
    return found


def best_of_one_pass(rows: Mapping[str, list[Scored]], pictures: Pictures) -> str:
    """The one-pass row that ranks the validation pictures best."""
    judged = pictures.validation

    def ranks(title: str) -> float:
        return RANK(rows[title][0].validation, judged.targets, judged.known)

    return max(ONE_PASS, key=ranks)


def row(
    title: str, found: list[Scored], best: tuple[str, Array], pictures: Pictures, cells: Cells
) -> Row:
    """A row measured on the test pictures.

    Args:
        title: What it is.
        found: One a seed.
        best: Title and test scores of the best one-pass row.
        pictures: The archive.
        cells: Where what is dear is kept.
    """
    test = pictures.test

    def measured() -> dict[str, Any]:
        each = [values(one, pictures) for one in found]
        whole = bootstrap(RANK, found[0].test, test.targets, test.known, draws=DRAWS)
        gain = paired_bootstrap(RANK, found[0].test, best[1], test.targets, test.known, draws=DRAWS)
        return {
            "values": {name: [one[name] for one in each] for name in each[0]},
            "interval": [whole.low, whole.high],
            "gain": None if title == best[0] else [gain.value, gain.low, gain.high],
        }

    arrays = [array for one in found for array in (one.test, one.logits)]
    costs = [(one.parameters, one.passes, one.flops, one.seconds) for one in found]
    key = ("row", pictures.identity, title == best[0], digest(*arrays, best[1]), costs)
    kept = cells.value(*key, otherwise=measured)
    gain = kept["gain"] and tuple(kept["gain"])
    return Row(title, kept["values"], tuple(kept["interval"]), gain)


def values(one: Scored, pictures: Pictures) -> dict[str, float]:
    """All metrics of one recognizer on the test pictures."""
    test, p = pictures.test, expit(one.logits)
    ranked = {name: POOLED[name](one.test, test.targets, test.known) for name in RANKED}
    honest = {name: POOLED[name](p, test.targets, test.known) for name in HONEST}
    recall = main_and_others(one.test, test.targets, pictures.mains, test.known)
    floor = float(noise_floor(POOLED["ece"], p, test.known, draws=5))
    cost = {"passes": one.passes, "flops": one.flops, "seconds": one.seconds}
    return {
        **ranked,
        "recall_of_main": recall.main,
        "recall_of_others": recall.others,
        **honest,
        "ece_by_chance": floor,
        **shown_without_labels(p, test.targets),
        **with_few_labels(one, pictures),
        **cost,
        "parameters": float(one.parameters),
    }


def with_few_labels(one: Scored, pictures: Pictures) -> dict[str, float]:
    """Brier skill and ECE where Platt scaling is fitted on 100 labelled pictures; mean of draws."""
    some, test = pictures.validation, pictures.test
    found = []
    for draw in range(PLATT_DRAWS):
        rows = np.random.default_rng(draw).permutation(len(some))[:FEW]
        platt = Platt().fit(one.validation[rows], some.targets[rows], some.known[rows])
        p = expit(platt.logits(one.test))
        found.append([POOLED[name](p, test.targets, test.known) for name in ("brier_skill", "ece")])
    skill, error = np.mean(found, axis=0).tolist()
    return {"brier_skill_of_platt": skill, "ece_of_platt": error}


def shown_without_labels(p: Array, targets: Array) -> dict[str, float]:
    """Labels a picture and micro-F1 where as many are shown as are expected, and the best F1."""
    order = np.argsort(-p, axis=None, kind="stable")
    hits = np.cumsum(targets.ravel()[order])
    f1 = 2 * hits / (np.arange(1, p.size + 1) + hits[-1])
    expected = p.sum()
    return {
        "labels_shown": float(expected / len(p)),
        "labels_there": float(targets.sum() / len(p)),
        "f1": float(f1[min(max(round(expected), 1), p.size) - 1]),
        "best_f1": float(f1.max()),
    }


RANK: Callable[..., float] = POOLED["mean_average_precision"]


def _run(pictures: Pictures, choice: Choice, seed: int) -> Run:
    return Run(backbone=Choice(pictures.encoder), method=choice, seed=seed)


def _scale(pictures: Pictures) -> float:
    return load_backbone(pictures.encoder).scale
