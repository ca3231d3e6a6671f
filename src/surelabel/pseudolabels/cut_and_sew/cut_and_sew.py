"""Define the settings of cut-and-sew self-training: overlays on canvases, and label updates."""

import math
from dataclasses import dataclass

from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.pseudolabels.cut_and_sew.top_images import (
    mask_top_images,
    overlay_candidates_of_top_images,
)
from surelabel.pseudolabels.targets.input_validation import check_pseudolabel_count
from surelabel.views.sewing import SewingVariant

REFERENCE_IMAGES = 5000  # number of images from which images_per_label is not reduced


@dataclass(frozen=True, kw_only=True)
class CutAndSew:
    """Settings for training a student on images with pasted overlays.

    Args:
        max_overlays: Largest number of overlays on an image (L), >= 0. If 0, no overlays are
            pasted.
        overlay_probability: Probability p in [0, 1]. In the variant "code", p is the probability
            that an overlay is the last overlay; in the variant "paper", p is the probability that a
            further overlay follows.
        overlay_scale: Largest fraction of the canvas width, and of the canvas height, that all
            overlays together may cover (q), in (0, 1].
        variant: Rule for number and size of the overlays, "paper" or "code".
        images_per_label: Number of images per label that are used as overlays (k), >= 1. If there
            are fewer than 5,000 training images, the number is reduced in proportion.
        strong_view_weight: Weight of the loss of the strongly augmented view, >= 0. If 0, the view
            is not used.
        label_learning_rate: Learning rate of the labels, >= 0. If 0, the labels are not updated.
        label_weight_decay: Weight decay of the labels towards log-odds 0, >= 0, and at most
            1 / ``label_learning_rate``.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3 and 3.5, with the settings of the authors' code.

    Differs:
        The default of L is 1, as in the authors' code, so that p has no effect in the variant
        "code". In the paper, p and q are 0.6, and L is not stated. The paper selects 200 images per
        label, which is 3.5 % of the images of VOC2012, but could be all images of a small dataset.

    Example:
        >>> import torch
        >>> CutAndSew().select_overlay_images(torch.tensor([[3.0, 1.0], [2.0, 0.0], [1.0, 3.0]]))
        tensor([0, 2])
    """

    max_overlays: int = 1
    overlay_probability: float = 0.6
    overlay_scale: float = 0.65
    variant: SewingVariant = "code"
    images_per_label: int = 200
    strong_view_weight: float = 0.7
    label_learning_rate: float = 0.01
    label_weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_pseudolabel_count("max_overlays", self.max_overlays)
        check_pseudolabel_count("images_per_label", self.images_per_label, minimum=1)
        rate = self.label_learning_rate
        decay = rate * self.label_weight_decay
        ranges = {
            "overlay_probability": (0 <= self.overlay_probability <= 1, "in [0, 1]"),
            "overlay_scale": (0 < self.overlay_scale <= 1, "a fraction of a side, in (0, 1]"),
            "strong_view_weight": (0 <= self.strong_view_weight < math.inf, "0 or more"),
            "label_learning_rate": (0 <= rate < math.inf, "0 or more, such as 0.01"),
            "label_weight_decay": (
                self.label_weight_decay >= 0 and decay <= 1,
                "in [0, 1 / label_learning_rate]",
            ),
        }
        for name, (is_valid, valid_range) in ranges.items():
            if not is_valid:
                raise ConfigError(f"{name} must be {valid_range}; got {getattr(self, name)!r}.")
        if self.variant not in ("paper", "code"):
            raise ConfigError(f'variant must be "paper" or "code"; got {self.variant!r}.')

    def select_overlay_images(self, scores: Tensor) -> Tensor:
        """Return the row numbers of the overlay images, in ascending order, ``(m,)``.

        Args:
            scores: Finite scores of n images and c labels, ``(n, c)``. The images with the highest
                scores of each label are selected.

        Raises:
            InputError: If ``scores`` are not of shape ``(n, c)``, or a score is not finite.
        """
        share = min(1.0, len(scores) / REFERENCE_IMAGES)
        count = max(1, round(share * self.images_per_label))
        return overlay_candidates_of_top_images(mask_top_images(scores, count=count))
