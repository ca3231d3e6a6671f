"""Label-pair regularizer over all pairs: a positive label should score above a negative one."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.pairs.label_pairs import LabelPairs
from surelabel.regularizers.pairs.pair_loss_sum import sum_pair_losses


def label_pair(step: TrainingStep) -> Tensor:
    """Compute the logistic ranking loss over all pairs of a positive and a negative label.

        2 / (T · (T - 1)) · Σ_{t positive} Σ_{s negative} log(1 + exp(z_s - z_t)),
        mean over images

    z are the log-odds if the loss has a strictly increasing link, otherwise the raw scores; T is
    the number of known labels of the image. The regularizer depends on differences within an image
    only; the level of the scores follows from the loss.

    Args:
        step: Training step. A target y between 0 and 1 counts as a positive with weight y and as a
            negative with weight 1 - y, never paired with itself. The result is the expectation
            over independent labels with these probabilities.

    Returns:
        Loss >= 0 in nats, ``()``, float32 or wider; 0 if no image has a positive and a negative
        label. It can be differentiated once.

    Raises:
        InputError: If the tensors of the step differ in shape.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 19 and 20, where beta of a pair is the sigmoid of the difference of log-odds.

    Differs:
        Unknown and graded targets are ours; for known targets of 0 or 1 the formula is that of the
        paper. An image with fewer than two known labels is left out of the mean. With a proper
        loss, it changes the probabilities of dependent labels: see docs/regularizers.md.

    Example:
        >>> import torch
        >>> scores, targets = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> label_pair(TrainingStep(scores, scores, targets, targets >= 0)).round(decimals=4)
        tensor(0.1467)
    """
    return sum_pair_losses(LabelPairs.from_step(step))
