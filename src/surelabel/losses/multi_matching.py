"""Compute the multi-matching contrastive loss, with one softmax over a whole batch."""

from torch import Tensor

from surelabel.losses.info_nce import info_nce
from surelabel.shapes import check_shapes


def multi_matching(
    scores: Tensor, targets: Tensor, known: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """Compute the multi-matching contrastive loss: softmax cross-entropy over a whole batch.

        loss: -Σ y · log(q) / Σ y     q = softmax of score / T over all known labels of all images

    In this formula, y is the target, T is the temperature, and the sums are over all known labels
    of all images. The gradient is (q - y / Σ y) / T, and its sum over the batch is 0. A constant
    added to all scores does not change the loss, so no link converts the scores to log-odds. The
    loss increases with the logarithm of the batch size. In contrast to ``multi_matching``,
    ``info_nce`` computes one softmax per image.

    Args:
        scores: Finite scores of ``n`` images and ``c`` labels, ``(n, c)``.
        targets: Targets in [0, 1], where 1 is positive, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``; unknown targets are ignored.
        temperature: Divisor of the scores (tau), in [1e-6, 1e6].

    Returns:
        Loss in nats, a scalar. If the batch has no positive, the loss is 0. The type is float32, or
        float64 if ``scores`` is float64.

    Raises:
        InputError: If ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: If ``temperature`` is out of range.

    Source:
        Recover and Match: Open-Vocabulary Multi-Label Recognition through Knowledge-Constrained
        Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.4.

    Differs:
        The paper has neither unknown targets nor graded targets (between 0 and 1). Here, labels
        with an unknown target are excluded from the softmax, and graded targets are divided by
        their sum, like all targets. Scores are clipped to [-1e30, 1e30].

    Example:
        >>> import torch
        >>> scores, targets = torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
        >>> multi_matching(scores, targets, torch.ones(2, 2, dtype=torch.bool)).round(decimals=4)
        tensor(1.3863)
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    batch_as_one_image = (array.reshape(1, -1) for array in (scores, targets, known))
    return info_nce(*batch_as_one_image, temperature=temperature)
