"""Label-pair regularizer over all pairs of a positive and a negative label."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.pairs.label_pairs import LabelPairs
from surelabel.regularizers.pairs.pair_loss_sum import sum_pair_losses


def label_pair(step: TrainingStep) -> Tensor:
    """Compute the logistic ranking loss over all pairs of a positive and a negative label.

        2 / (T · (T - 1)) · Σ_{t positive} Σ_{s negative} log(1 + exp(z_s - z_t)),
        mean over images

    where z are the log-odds and T is the number of known labels of the image. If the loss has no
    strictly increasing link, z are the raw scores. The regularizer depends only on differences of
    scores within an image; the level of the scores is determined by the loss.

    Args:
        step: Training step. A target y between 0 and 1 counts as a positive with weight y and as a
            negative with weight 1 - y; a label is never paired with itself. For targets between 0
            and 1, the loss is the expected loss of independent labels with probability y.

    Returns:
        Loss >= 0 in nats, ``()``, float32 or wider. If no image has a positive and a negative
        label, the loss is 0. The loss can be differentiated once.

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
