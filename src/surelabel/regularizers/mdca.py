"""Compute MDCA, the multi-class difference of confidence and accuracy, per label."""

import torch
from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.shapes import check_shapes


def mdca(step: TrainingStep) -> Tensor:
    """Penalize the difference between mean probability and prevalence of each label.

        mean over labels of | mean over images of p - mean over images of y |,  p = sigmoid(z)

    In this formula, y is the target, z is the log-odds and p is the probability of a label.

    Args:
        step: Training step. If the step has no log-odds, z is the score of the label.

    Returns:
        Scalar loss in [0, 1], ``()``, in float32 or a wider type. If no target is known, the loss
        is 0.

    Raises:
        InputError: If the shapes of the tensors of the step do not match.

    Source:
        Hebbalaguppe et al., A Stitch in Time Saves Nine: A Train-Time Regularizing Loss for
        Improved Neural Network Calibration, CVPR 2022.

    Differs:
        The probability p is a sigmoid, because an image may have several positive labels. The paper
        uses a softmax for one label per image. The means over images use only known targets. A
        label without known targets in the batch is left out.

    Example:
        >>> scores, targets = torch.zeros(4, 2), torch.tensor([[1.0, 0], [0, 0], [0, 0], [0, 0]])
        >>> mdca(TrainingStep(scores, scores, targets, targets >= 0))
        tensor(0.3750)
    """
    scores = step.scores if step.logits is None else step.logits
    check_shapes(z=(scores, "n c"), targets=(step.targets, "n c"), known=(step.known, "n c"))
    z = scores.to(torch.promote_types(scores.dtype, torch.float32))
    excess = torch.where(step.known, z.sigmoid() - step.targets.to(z.dtype), 0.0).sum(0)
    n_known = step.known.sum(0)
    gaps = (excess / n_known.clip(min=1)).abs()
    return gaps.sum() / (n_known > 0).sum().clip(min=1)
