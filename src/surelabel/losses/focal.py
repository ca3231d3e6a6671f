"""Compute the focal loss with separate focusing parameters for positives and negatives."""

from torch import Tensor

from surelabel.links import Focal
from surelabel.links.focal import FocalVariant
from surelabel.losses.asymmetric import asymmetric


def focal(
    scores: Tensor,
    targets: Tensor,
    *,
    gamma_pos: float = 2.0,
    gamma_neg: float = 2.0,
    variant: FocalVariant = "paper",
) -> Tensor:
    """Compute the focal loss of each label: confident correct predictions have a small weight.

        positive: -(1 - q)^gamma_pos · log(q)          q = sigmoid(score)
        negative: -q^gamma_neg · log(1 - q)
        loss:     y · positive + (1 - y) · negative

    In these formulas, y is the target. The scores are not log-odds. To convert scores to log-odds,
    use ``focal_loss_link`` with the same settings. The loss equals ``asymmetric`` with ``clip=0``.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        gamma_pos: Focusing parameter (exponent) of positives (gamma+), >= 0.
        gamma_neg: Focusing parameter (exponent) of negatives (gamma-), >= 0.
        variant: "paper" propagates the gradient through the focusing weights (1 - q)^gamma_pos and
            q^gamma_neg, as in the original focal loss. "code" treats the focusing weights as
            constants, as in the released code of the asymmetric loss.

    Returns:
        Loss of each label in nats, ``(n, c)``, without reduction. The type is float32, or float64
        if ``scores`` is float64.

    Raises:
        InputError: If ``scores`` and ``targets`` differ in shape.
        ConfigError: If a setting is out of range.

    Source:
        Lin et al., Focal Loss for Dense Object Detection, ICCV 2017, arXiv:1708.02002; with two
        focusing parameters as in eq. 7 of Cheng and Vasconcelos, Towards Calibrated Multi-label
        Deep Neural Networks, CVPR 2024.

    Differs:
        The class weight alpha of Lin et al. is omitted, because it would shift the probabilities.
        The loss ``spa`` has class weights and a link that corrects the shift. For a graded target
        (between 0 and 1), the loss is the weighted mean of the two losses.

    Example:
        >>> import torch
        >>> focal(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 1.0]])).round(decimals=4)
        tensor([[0.1733, 0.0018]])
    """
    return asymmetric(
        scores, targets, gamma_pos=gamma_pos, gamma_neg=gamma_neg, clip=0.0, variant=variant
    )


def focal_loss_link(
    *, gamma_pos: float = 2.0, gamma_neg: float = 2.0, variant: FocalVariant = "paper"
) -> Focal:
    """Return the link of a head trained with ``focal`` and the same settings."""
    return Focal(gamma_pos=gamma_pos, gamma_neg=gamma_neg, clip=0.0, variant=variant)
