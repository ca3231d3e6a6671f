"""Pseudo-labels: targets for unlabelled images. Add one line to a table for a new entry.

``PSEUDOLABELS``: ``(scores (n c) or view scores (n t c), *, settings) -> targets (n c)``. Scores
are log-odds, as computed by ``views.log_odds_of_softmax``; the first view is the whole image.
``CORRECTIONS``: ``(scores (n c), *, settings) -> scores (n c)``, from log-odds to log-odds.
``SEWINGS``: settings of the training on pseudo-labels, a frozen dataclass.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.pseudolabels.ccd import ccd
from surelabel.pseudolabels.cdul import cdul
from surelabel.pseudolabels.corrections import CORRECTIONS, hard, linear, square_root
from surelabel.pseudolabels.cut_and_sew.cut_and_sew import CutAndSew
from surelabel.pseudolabels.cut_and_sew.em_losses import expectation_loss, maximization_loss
from surelabel.pseudolabels.cut_and_sew.label_estimator import EstimatorBatch, LabelEstimator
from surelabel.pseudolabels.cut_and_sew.top_images import (
    mask_top_images,
    mask_top_images_by_prevalence,
    overlay_candidates,
)
from surelabel.pseudolabels.tailored import tailored
from surelabel.pseudolabels.targets.part_presence import presence_probabilities
from surelabel.pseudolabels.targets.rank_inversions import (
    inversions_within_images,
    inversions_within_labels,
)

PSEUDOLABELS: dict[str, Callable[..., Tensor]] = {"ccd": ccd, "cdul": cdul, "tailored": tailored}
SEWINGS: dict[str, Callable[..., CutAndSew]] = {"cut_and_sew": CutAndSew}

__all__ = [
    "CORRECTIONS",
    "PSEUDOLABELS",
    "SEWINGS",
    "CutAndSew",
    "EstimatorBatch",
    "LabelEstimator",
    "ccd",
    "cdul",
    "expectation_loss",
    "hard",
    "inversions_within_images",
    "inversions_within_labels",
    "linear",
    "mask_top_images",
    "mask_top_images_by_prevalence",
    "maximization_loss",
    "overlay_candidates",
    "presence_probabilities",
    "square_root",
    "tailored",
]
