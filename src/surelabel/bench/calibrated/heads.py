"""Define the linear heads of the calibration comparison: losses, and readouts to log-odds."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.config import Choice, Run
from surelabel.links import Focal, Sigmoid
from surelabel.losses import LINK_OF_LOSS

LEARNING_RATES = (0.001, 0.003, 0.01, 0.03)
WEIGHT_DECAYS = (0.01, 0.1, 1.0)
PAIR_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)  # of label-pair regularization; not stated in the paper
FOCAL: dict[str, Any] = {"gamma_pos": 1.0, "gamma_neg": 4.0}
ASYMMETRIC: dict[str, Any] = {"gamma_pos": 0.0, "gamma_neg": 4.0, "clip": 0.05, "variant": "code"}

ScoresToLogits = Callable[[Array], Array]


@dataclass(frozen=True)
class Head:
    """Loss of a linear head, and the functions that convert scores of the head to log-odds.

    Attributes:
        title: Title of the head in tables.
        loss: Loss with its settings.
        has_label_pairs: Whether label-pair regularization is added to the loss. If True, the key of
            the head ends in ``-lpr``.
        readouts: Functions that convert scores to log-odds, by the suffix of the row title. The
            first function is the link of the loss. If the loss has no link, the function is None,
            and only a calibrator can convert the scores.
    """

    title: str
    loss: Choice
    has_label_pairs: bool = False
    readouts: dict[str, ScoresToLogits | None] = field(default_factory=dict)


def _link_of_head_loss(loss: Choice) -> ScoresToLogits:
    link = LINK_OF_LOSS[loss.name]
    assert link is not None
    return link(**loss.settings).logits


def _define_calibrated_heads() -> dict[str, Head]:
    without_pairs = {
        "bce": Head("BCE", Choice("binary"), readouts={"": Sigmoid().logits}),
        "focal": Head(
            "focal",
            Choice("focal", FOCAL),
            readouts={" + map": _link_of_head_loss(Choice("focal", FOCAL)), "": Sigmoid().logits},
        ),
        "asy": Head(
            "ASY",
            Choice("asymmetric", ASYMMETRIC),
            readouts={
                " + detached map": _link_of_head_loss(Choice("asymmetric", ASYMMETRIC)),
                " + the paper's map": Focal(**ASYMMETRIC | {"variant": "paper"}).logits,
                "": Sigmoid().logits,
            },
        ),
        "spa": Head(
            "SPA",
            Choice("spa"),
            readouts={
                "": _link_of_head_loss(Choice("spa")),
                " through a sigmoid": Sigmoid().logits,
            },
        ),
    }
    with_pairs = {
        f"{key}-lpr": replace(head, title=f"{head.title} + LPR", has_label_pairs=True)
        for key, head in without_pairs.items()
    }
    two_way = {"twl": Head("TWL", Choice("two_way"), readouts={"": None})}
    return without_pairs | two_way | with_pairs


HEADS: dict[str, Head] = _define_calibrated_heads()


def candidate_head_runs(
    head: Head, run: Run, *, count: int, seed: int, selected_without_pairs: Run | None = None
) -> list[Run]:
    """Return the candidate runs of a head, of which one is selected on the validation split.

    The runs differ in learning rate, weight decay and the weight of label-pair regularization.
    Every head has the same number of candidates. Without label-pair regularization, the first
    candidate has the default learning rate and weight decay, and the other candidates are sampled
    from the grid. With label-pair regularization, the first candidates combine each weight with the
    settings selected without label-pair regularization, and the other candidates are sampled from
    the grid.

    Args:
        head: Head to fit.
        run: Run with the settings that all heads share.
        count: Number of candidate runs.
        seed: Seed of the random order of the grid points.
        selected_without_pairs: Run selected for the same loss without label-pair regularization. If
            None, the shared settings are used. Heads without this regularization ignore the run.
    """
    base = replace(run, loss=head.loss)
    generator = np.random.default_rng(seed)
    grid = [
        replace(base, learning_rate=rate, weight_decay=decay)
        for rate in LEARNING_RATES
        for decay in WEIGHT_DECAYS
    ]
    if not head.has_label_pairs:
        others = [grid[i] for i in generator.permutation(len(grid)) if grid[i] != base]
        return [base, *others][:count]
    pairs = Choice("label_pair")
    first = [
        replace(selected_without_pairs or base, regularizer=pairs, regularizer_weight=weight)
        for weight in PAIR_WEIGHTS
    ]
    others = [
        replace(
            grid[i],
            regularizer=pairs,
            regularizer_weight=PAIR_WEIGHTS[position % len(PAIR_WEIGHTS)],
        )
        for position, i in enumerate(generator.permutation(len(grid)))
    ]
    return _remove_duplicate_heads([*first, *others])[:count]


def _remove_duplicate_heads(runs: list[Run]) -> list[Run]:
    return list({repr(run): run for run in runs}.values())
