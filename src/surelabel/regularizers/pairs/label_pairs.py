"""Construct the pairs of a positive and a negative label in the images of a training step."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class LabelPairs:
    """Scores and weights of labels, for pairs of a positive and a negative label of one image.

    Attributes:
        scores: Log-odds of c labels for n images, or scores if the step has no log-odds, float32 or
            wider, ``(n, c)``. If a target is unknown, the score is 0.
        positive_weights: Weight of each label as a positive, ``(n, c)``: the target, or 0 if the
            target is unknown.
        negative_weights: Weight of each label as a negative, ``(n, c)``: 1 - target, or 0 if the
            target is unknown.
        image_weights: Weight of the pair losses of each image, float64, ``(n,)``.
    """

    scores: Tensor
    positive_weights: Tensor
    negative_weights: Tensor
    image_weights: Tensor

    @classmethod
    def from_step(cls, step: TrainingStep) -> Self:
        """Return the label pairs of a training step.

        The weight of an image with T >= 2 known targets is 2 / (T · (T - 1)), divided by the number
        of such images. Images with fewer known targets have weight 0.

        Raises:
            InputError: If the shapes of the tensors of the step do not match.
        """
        step_scores = step.scores if step.logits is None else step.logits
        check_shapes(
            scores=(step.scores, "n c"),
            logits=(step.logits, "n c"),
            targets=(step.targets, "n c"),
            known=(step.known, "n c"),
        )
        scores = step_scores.to(torch.promote_types(step_scores.dtype, torch.float32))
        scores = torch.where(step.known, scores, 0.0)
        positive = torch.where(step.known, step.targets.to(scores.dtype), 0.0)
        negative = torch.where(step.known, 1 - positive, 0.0)
        n_known = step.known.sum(dim=1).double()
        n_images = (n_known >= 2).sum().clip(min=1)
        pair_share = 2 / (n_known * (n_known - 1) * n_images).clip(min=1)
        return cls(scores, positive, negative, torch.where(n_known >= 2, pair_share, 0.0))
