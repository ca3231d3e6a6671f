"""Compute pseudo-labels, that is, targets for unlabelled images.

To add an entry, add one line to one of the following tables.

- ``PSEUDOLABELS`` contains functions ``(scores (n c) or (n t c), *, settings) -> targets (n c)``.
  The scores are log-odds, as computed by ``views.relative_log_odds_of_softmax``. The first of the t
  views is the whole image.
- ``CORRECTIONS`` contains functions ``(scores (n c), *, settings) -> scores (n c)``, where all
  scores are log-odds.
- ``SEWINGS`` contains frozen dataclasses with the settings of the training on pseudo-labels.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.pseudolabels.ccd import ccd
from surelabel.pseudolabels.cdul import cdul
from surelabel.pseudolabels.corrections import (
    CORRECTIONS,
    hard_correction,
    linear_correction,
    square_root_correction,
)
from surelabel.pseudolabels.cut_and_sew.cut_and_sew import CutAndSew
from surelabel.pseudolabels.cut_and_sew.em_losses import em_expectation_loss, em_maximization_loss
from surelabel.pseudolabels.cut_and_sew.label_estimator import EstimatorBatch, LabelEstimator
from surelabel.pseudolabels.cut_and_sew.top_images import (
    mask_top_images,
    mask_top_images_by_prevalence,
    overlay_candidates_of_top_images,
)
from surelabel.pseudolabels.tailored import tailored
from surelabel.pseudolabels.targets.part_presence import part_presence_probabilities
from surelabel.pseudolabels.targets.rank_inversions import (
    rank_inversions_within_images,
    rank_inversions_within_labels,
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
    "em_expectation_loss",
    "em_maximization_loss",
    "hard_correction",
    "linear_correction",
    "mask_top_images",
    "mask_top_images_by_prevalence",
    "overlay_candidates_of_top_images",
    "part_presence_probabilities",
    "rank_inversions_within_images",
    "rank_inversions_within_labels",
    "square_root_correction",
    "tailored",
]
