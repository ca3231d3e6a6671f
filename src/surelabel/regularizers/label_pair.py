"""Compute the label-pair regularizer over all pairs of a positive and a negative label."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.pairs.label_pairs import LabelPairs
from surelabel.regularizers.pairs.pair_loss_sum import sum_pair_losses


def label_pair(step: TrainingStep) -> Tensor:
    """Compute the logistic ranking loss over all pairs of a positive and a negative label.

        2 / (T · (T - 1)) · Σ_{t positive} Σ_{s negative} log(1 + exp(z_s - z_t)),
        mean over images

    In this formula, z_t are the log-odds of label t and T is the number of labels of the image with
    a known target. If the loss has no strictly increasing link, z are the raw scores. The
    regularizer depends only on differences of scores within an image. Its value does not change if
    a constant is added to all scores of an image.

    Args:
        step: Training step. A target y between 0 and 1 is used as a positive with weight y and as a
            negative with weight 1 - y. A label is never paired with itself. The loss then equals
            the expected loss for targets that are sampled independently with probability y.

    Returns:
        Scalar loss >= 0 in nats, ``()``, in float32 or a wider type. If no image has a positive and
        a negative label, the loss is 0. Only the first derivative of the loss is available.

    Raises:
        InputError: If the shapes of the tensors of the step do not match.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 19 and 20. In these equations, beta of a label pair is the sigmoid of the difference of
        their log-odds.

    Differs:
        If all targets are known and 0 or 1, the formula is that of the paper; the extension to
        unknown and graded targets is ours. Images with fewer than two known targets are left out of
        the mean. Added to a proper loss, the regularizer changes the optimal probabilities of
        dependent labels; see docs/regularizers.md.

    Example:
        >>> import torch
        >>> scores, targets = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> label_pair(TrainingStep(scores, scores, targets, targets >= 0)).round(decimals=4)
        tensor(0.1467)
    """
    return sum_pair_losses(LabelPairs.from_step(step))
