"""The heads of the comparison: a loss each, with and without label pairs, and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surelabel.config import Choice, Run
from surelabel.links import Focal, Sigmoid
from surelabel.losses import LINK_OF
from surelabel.records import Array

RATES = (0.001, 0.003, 0.01, 0.03)
DECAYS = (0.01, 0.1, 1.0)
WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of label pairs; the paper does not state its own
FOCAL: dict[str, Any] = {"gamma_pos": 1.0, "gamma_neg": 4.0}
ASYMMETRIC: dict[str, Any] = {"gamma_pos": 0.0, "gamma_neg": 4.0, "clip": 0.05, "variant": "code"}

Reading = Callable[[Array], Array]


@dataclass(frozen=True)
class Head:
    """A loss that a linear head is fitted with.

    Attributes:
        title: In tables.
        loss: With its settings.
        pairs: Whether the label-pair regularizer stands beside it; its key then ends in ``-lpr``.
        readings: What is added to the title, and how scores become log-odds; the first is how its
            theory reads it. None among them where only a calibrator can.
    """

    title: str
    loss: Choice
    pairs: bool = False
    readings: dict[str, Reading | None] = field(default_factory=dict)


def _own(loss: Choice) -> Reading:
    link = LINK_OF[loss.name]
    assert link is not None
    return link(**loss.settings).logits


def _heads() -> dict[str, Head]:
    plain = {
        "bce": Head("BCE", Choice("binary"), readings={"": Sigmoid().logits}),
        "focal": Head(
            "focal",
            Choice("focal", FOCAL),
            readings={" + map": _own(Choice("focal", FOCAL)), "": Sigmoid().logits},
        ),
        "asy": Head(
            "ASY",
            Choice("asymmetric", ASYMMETRIC),
            readings={
                " + detached map": _own(Choice("asymmetric", ASYMMETRIC)),
                " + the paper's map": Focal(**ASYMMETRIC | {"variant": "paper"}).logits,
                "": Sigmoid().logits,
            },
        ),
        "spa": Head(
            "SPA",
            Choice("spa"),
            readings={"": _own(Choice("spa")), " through a sigmoid": Sigmoid().logits},
        ),
    }
    paired = {
        f"{key}-lpr": replace(head, title=f"{head.title} + LPR", pairs=True)
        for key, head in plain.items()
    }
    two_way = {"twl": Head("TWL", Choice("two_way"), readings={"": None})}
    return plain | two_way | paired


HEADS: dict[str, Head] = _heads()


def candidates(
    head: Head, run: Run, *, count: int, seed: int, alone: Run | None = None
) -> list[Run]:
    """As many runs to choose from for every head: step size, decay and, with pairs, their weight.

    Without pairs: the recipe of the method, then others of the grid. With pairs: each weight at the
    settings that were chosen for the same loss alone, then others of the grid.

    Args:
        head: What is fitted.
        run: What all heads share.
        count: How many runs.
        seed: Of the order in which the grid is drawn.
        alone: The run chosen for the same loss without pairs; for heads with pairs.
    """
    base = replace(run, loss=head.loss)
    order = np.random.default_rng(seed)
    grid = [replace(base, learning_rate=r, weight_decay=d) for r in RATES for d in DECAYS]
    if not head.pairs:
        drawn = [grid[i] for i in order.permutation(len(grid)) if grid[i] != base]
        return [base, *drawn][:count]
    pairs = Choice("label_pair")
    first = [replace(alone or base, regularizer=pairs, regularizer_weight=w) for w in WEIGHTS]
    drawn = [
        replace(grid[i], regularizer=pairs, regularizer_weight=WEIGHTS[place % len(WEIGHTS)])
        for place, i in enumerate(order.permutation(len(grid)))
    ]
    return _different([*first, *drawn])[:count]


def _different(runs: list[Run]) -> list[Run]:
    return list({repr(run): run for run in runs}.values())
