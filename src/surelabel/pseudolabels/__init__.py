"""Pseudo-labels: targets where there were none. Add one line to a table here for a new one.

``PSEUDOLABELS``: ``(scores (n c) or view scores (n t c), *, settings) -> targets (n c)``. Scores
are log-odds, as ``views.log_odds_of_softmax`` gives them; of view scores the first view is the
whole picture.
``CORRECTIONS``: ``(scores (n c), *, settings) -> scores (n c)``, from log-odds to log-odds.
``SEWINGS``: how a student learns from them, a frozen dataclass of settings.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.pseudolabels.ccd import ccd
from surelabel.pseudolabels.cdul import cdul
from surelabel.pseudolabels.estimator import Borrowed, Estimator
from surelabel.pseudolabels.expectation import expectation, maximization
from surelabel.pseudolabels.hard import hard
from surelabel.pseudolabels.inversions import inversions_within_labels, inversions_within_pictures
from surelabel.pseudolabels.linear import linear
from surelabel.pseudolabels.parts import seen_in_parts
from surelabel.pseudolabels.selection import patch_set, top_pictures, top_pictures_by_prevalence
from surelabel.pseudolabels.sewing import Sewing
from surelabel.pseudolabels.square_root import square_root
from surelabel.pseudolabels.tailored import tailored

CORRECTIONS: dict[str, Callable[..., Tensor]] = {
    "hard": hard,
    "linear": linear,
    "square_root": square_root,
}
PSEUDOLABELS: dict[str, Callable[..., Tensor]] = {"ccd": ccd, "cdul": cdul, "tailored": tailored}
SEWINGS: dict[str, Callable[..., Sewing]] = {"sewn": Sewing}

__all__ = [
    "CORRECTIONS",
    "PSEUDOLABELS",
    "SEWINGS",
    "Borrowed",
    "Estimator",
    "Sewing",
    "ccd",
    "cdul",
    "expectation",
    "hard",
    "inversions_within_labels",
    "inversions_within_pictures",
    "linear",
    "maximization",
    "patch_set",
    "seen_in_parts",
    "square_root",
    "tailored",
    "top_pictures",
    "top_pictures_by_prevalence",
]
