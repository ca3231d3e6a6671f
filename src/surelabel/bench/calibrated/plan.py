"""What is measured and compared, and how much work that is."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from surelabel.config import Choice, Run

SHOWN = (
    "brier_skill",
    "log_loss",
    "mean_average_precision",
    "mean_average_precision_per_image",
    "ace",
    "mce",
    "ece",
    "ece_of_candidates",
)
COMPARED = (  # what is told apart, as row minus row
    ("SPA", "ASY"),
    ("SPA", "ASY + detached map"),
    ("SPA", "focal"),
    ("SPA", "focal + map"),
    ("SPA", "BCE"),
    ("SPA", "TWL + temperature"),
    ("SPA", "TWL + Platt"),
    ("SPA + LPR", "SPA"),
    ("BCE + LPR", "BCE"),
    ("focal + LPR", "focal"),
    ("ASY + LPR", "ASY"),
    ("SPA + Platt", "SPA"),
    ("BCE + Platt", "BCE"),
    ("ASY + Platt", "ASY"),
    ("SPA + Platt", "ASY + Platt"),
    ("SPA + Platt", "BCE + Platt"),
)
SENSITIVITY = {  # of SPA, one at a time; the paper's choice among each
    "zeta_neg": (1.0, 2.0, 5.0, 10.0),
    "k_neg": (1.0, 2.0, 3.0, 5.0),
    "b_neg": (0.0, 0.5, 1.0, 2.0),
}
SEARCHED = ("BCE", "ASY", "ASY + detached map", "SPA", "SPA + LPR", "ASY + Platt", "SPA + Platt")
DRAWN = ("BCE", "ASY", "SPA", "SPA + LPR")  # reliability curves, beside the best with Platt

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """How much work is done.

    Attributes:
        epochs: Passes of each fit.
        steps: More passes are made where these would be fewer steps than this.
        batch: Pictures a step.
        budget: Settings that each head may choose from.
        seeds: Fits of each head with the settings chosen.
        longest: Labels in the longest query.
        exact: Up to this many labels all queries are judged, where that takes minutes.
        sample: Queries drawn of each shape of longer ones.
    """

    epochs: int = 20
    steps: int = 500
    batch: int = 256
    budget: int = 12
    seeds: int = 5
    longest: int = 5
    exact: int = 3
    sample: int = 2000

    def run(self, pictures: int) -> Run:
        """What all heads share that are fitted on so many pictures.

        With few pictures 20 passes are too few steps: heads whose loss is steep get further, and
        what is compared is then speed. The calibrator is not used; it is part of a cell's name.
        """
        linear, unused = Choice("linear"), Choice("platt")
        epochs = max(self.epochs, ceil(self.steps * self.batch / pictures))
        return Run(method=linear, calibrator=unused, epochs=epochs, batch=self.batch)


FULL = Plan()
QUICK = Plan(epochs=10, steps=400, batch=64, budget=2, seeds=2, longest=2, exact=2)
