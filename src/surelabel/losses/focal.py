"""Focal loss with a power of its own for positives and for negatives."""

from torch import Tensor

from surelabel.links import Focal
from surelabel.links.focal import Variant
from surelabel.losses.asymmetric import asymmetric


def focal(
    scores: Tensor,
    targets: Tensor,
    *,
    gamma_pos: float = 2.0,
    gamma_neg: float = 2.0,
    variant: Variant = "paper",
) -> Tensor:
    """Down-weight labels that are right already.

        positive: -(1 - q)^gamma_pos · log(q)          q = sigmoid(score)
        negative: -q^gamma_neg · log(1 - q)
        loss:     y · positive + (1 - y) · negative

    Its scores are not log-odds: ``focal_link`` with the same settings makes them so. It is
    ``asymmetric`` without a clip.

    Args:
        scores: Of the method, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.
        gamma_pos: Focusing power of positives (gamma+), >= 0.
        gamma_neg: Focusing power of negatives (gamma-), >= 0.
        variant: "paper" lets the gradient through the focusing weights, as all focal losses do;
            "code" takes them as constants, as the code of the asymmetric loss does.

    Returns:
        The loss of every element, ``(n, c)``, in nats, float32 at least. Nothing is summed.

    Raises:
        InputError: ``scores`` and ``targets`` differ in shape.
        ConfigError: a setting is out of its range.

    Source:
        Lin et al., Focal Loss for Dense Object Detection, ICCV 2017, arXiv:1708.02002; with two
        powers as eq. 7 of Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural
        Networks, CVPR 2024.

    Differs:
        No weight alpha between positives and negatives: it would move the probabilities, which
        ``spa`` does with a link that takes it back. Graded targets mix the two losses.

    Example:
        >>> import torch
        >>> focal(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 1.0]])).round(decimals=4)
        tensor([[0.1733, 0.0018]])
    """
    return asymmetric(
        scores, targets, gamma_pos=gamma_pos, gamma_neg=gamma_neg, clip=0.0, variant=variant
    )


def focal_link(
    *, gamma_pos: float = 2.0, gamma_neg: float = 2.0, variant: Variant = "paper"
) -> Focal:
    """The link of a head trained with ``focal`` of these settings."""
    return Focal(gamma_pos=gamma_pos, gamma_neg=gamma_neg, clip=0.0, variant=variant)
