"""Mean predicted against mean observed presence of each label."""

import torch
from torch import Tensor

from surelabel.records import Step
from surelabel.shapes import check_shapes


def mdca(step: Step) -> Tensor:
    """Charge each label the gap between how often it is predicted and how often it is there.

        mean over labels of | mean over pictures of p - mean over pictures of y |,  p = sigmoid(z)

    Args:
        step: One training step; z are its log-odds where it has them, its scores where not.

    Returns:
        One number in [0, 1], ``()``, float32 at least; 0 where nothing is known.

    Raises:
        InputError: the parts of the step differ in shape.

    Source:
        Hebbalaguppe et al., A Stitch in Time Saves Nine: A Train-Time Regularizing Loss for
        Improved Neural Network Calibration, CVPR 2022.

    Differs:
        For several labels p is a sigmoid, where the paper has the softmax of a single label.
        Means are over the known targets; a label with none in the batch is left out.

    Example:
        >>> scores, targets = torch.zeros(4, 2), torch.tensor([[1.0, 0], [0, 0], [0, 0], [0, 0]])
        >>> mdca(Step(scores, scores, targets, targets >= 0))
        tensor(0.3750)
    """
    given = step.scores if step.logits is None else step.logits
    check_shapes(z=(given, "n c"), targets=(step.targets, "n c"), known=(step.known, "n c"))
    z = given.to(torch.promote_types(given.dtype, torch.float32))
    excess = torch.where(step.known, z.sigmoid() - step.targets.to(z.dtype), 0.0).sum(0)
    counts = step.known.sum(0)
    gaps = (excess / counts.clip(min=1)).abs()
    return gaps.sum() / (counts > 0).sum().clip(min=1)
