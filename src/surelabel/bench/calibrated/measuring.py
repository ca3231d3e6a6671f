"""Losses, maps, label pairs and calibrators side by side: ``surelabel bench calibrated``.

Every head is linear on frozen vectors. Each gets the same number of settings to choose from, on
validation log loss as its theory reads it; then it is fitted once a seed, each time on another 80 %
of the training pictures, and measured on the test pictures, of which nothing was chosen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.bench.calibrated.comparing import compared
from surelabel.bench.calibrated.fits import SHARE
from surelabel.bench.calibrated.fits import scores as scores_of
from surelabel.bench.calibrated.heads import HEADS, WEIGHTS, Head, candidates
from surelabel.bench.calibrated.measured import row, values
from surelabel.bench.calibrated.plan import DRAWN, SEARCHED, SENSITIVITY, Plan, Progress
from surelabel.bench.calibrated.reads import Read, reads, validation_loss
from surelabel.bench.calibrated.results import Results, Row
from surelabel.bench.calibrated.retrieval import retrieval
from surelabel.bench.cells import Cells
from surelabel.bench.data import Material
from surelabel.config import Choice, Run
from surelabel.links import SPA
from surelabel.metrics import Reliability, reliability
from surelabel.records import Array

WATCHED = ("brier_skill", "log_loss", "mean_average_precision", "ace", "ece")  # sensitivity


def measure(
    material: Material,
    plan: Plan,
    cells: Cells,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Results:
    """All rows of the table for one data set, with the comparisons, SPA's sensitivity and curves.

    Args:
        material: The vectors and labels.
        plan: How much work.
        cells: Where fitted heads are kept, so that a stopped run goes on.
        seed: The first of the fits, and of the settings that are drawn to choose from.
        progress: Called with heads and queries done and their number.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    done = _counter(progress, plan)
    found: dict[str, Read] = {}
    chosen: dict[str, Run] = {}
    for key, head in HEADS.items():
        alone = chosen.get(key.removesuffix("-lpr"))
        run = chosen[key] = _chosen(material, head, alone, plan, cells, seed, done)
        fits = []
        for own in range(seed, seed + plan.seeds):
            fits.append(scores_of(cells, material, run, seed=own))
            done()
        found |= {read.title: read for read in reads(key, head, run, fits, material.validation)}
    rows = {title: row(read, material, cells) for title, read in found.items()}
    test = material.test
    logits = {title: read.logits[0] for title, read in found.items()}
    shown = (*DRAWN, _best_with_platt(rows))
    return Results(
        material=material.name,
        pictures=tuple(len(p) for p in (material.train, material.validation, test)),
        labels=len(test.names),
        plan=plan,
        rows=tuple(rows.values()),
        comparisons=compared(rows, logits, test),
        sensitivity=(
            *_sensitivity(material, found["SPA"].run, cells, seed, done),
            *_weights(material, found["SPA"].run, cells, seed, done),
        ),
        retrieval=_searched(found, material, plan, cells, done),
        reliability={title: _bins(logits[title], material) for title in shown},
    )


def _chosen(
    material: Material,
    head: Head,
    alone: Run | None,
    plan: Plan,
    cells: Cells,
    seed: int,
    done: Callable[[], None],
) -> Run:
    """Of a head's candidates the one with the least validation log loss."""
    shared, losses = plan.run(round(SHARE * len(material.train))), []
    runs = candidates(head, shared, count=plan.budget, seed=seed, alone=alone)
    for run in runs:
        scores, _ = scores_of(cells, material, run, seed=seed)
        losses.append(validation_loss(head, scores, material.validation))
        done()
    return runs[int(np.argmin(losses))]


def _sensitivity(
    material: Material, run: Run, cells: Cells, seed: int, done: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """SPA with one of its settings changed, for the first seed."""
    for key, value in ((key, value) for key, some in SENSITIVITY.items() for value in some):
        changed = replace(run, loss=Choice("spa", {key: value}))
        _, scores = scores_of(cells, material, changed, seed=seed)
        logits = SPA(**changed.loss.settings).logits(scores)
        yield {"setting": key, "value": value} | values(logits, scores, material.test, WATCHED)
        done()


def _weights(
    material: Material, run: Run, cells: Cells, seed: int, done: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """SPA with label pairs of each weight beside it, for the first seed."""
    for weight in WEIGHTS:
        paired = replace(run, regularizer=Choice("label_pair"), regularizer_weight=weight)
        _, scores = scores_of(cells, material, paired, seed=seed)
        logits = SPA(**run.loss.settings).logits(scores)
        measured = values(logits, scores, material.test, WATCHED)
        yield {"setting": "regularizer_weight", "value": weight} | measured
        done()


def _searched(
    found: Mapping[str, Read],
    material: Material,
    plan: Plan,
    cells: Cells,
    done: Callable[[], None],
) -> dict[str, dict[str, Any]]:
    searched = {}
    for title in SEARCHED:
        searched[title] = retrieval(found[title], material.test, plan, cells)
        done()
    return searched


def _bins(logits: Array, material: Material) -> Reliability:
    return reliability(expit(logits), material.test.targets, material.test.known)


def _best_with_platt(rows: Mapping[str, Row]) -> str:
    """The calibrated row of the least log loss."""
    return min((t for t in rows if t.endswith("+ Platt")), key=lambda t: rows[t].mean("log_loss"))


def _counter(progress: Progress | None, plan: Plan) -> Callable[[], None]:
    """What to call after each fit and each row of queries."""
    total = len(HEADS) * (plan.budget + plan.seeds)
    total += sum(len(some) for some in SENSITIVITY.values()) + len(SEARCHED) + len(WEIGHTS)
    numbers = count(1)

    def done() -> None:
        number = next(numbers)
        if progress:
            progress(number, total)

    return done
