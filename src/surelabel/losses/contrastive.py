"""Compute the contrastive loss of pairs: InfoNCE from images to texts and from texts to images."""

from torch import Tensor

from surelabel.losses.info_nce import info_nce


def contrastive(
    scores: Tensor, targets: Tensor, known: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """Compute the contrastive loss: the mean of ``info_nce`` of the rows and of the columns.

    For pairs, the rows are images and the columns are their captions, and the scores are
    similarities that are already divided by a learned temperature. All captions of an image, and
    all images of a caption, are positives.

    Args:
        scores: Finite scores of ``n`` images and ``c`` texts or labels, ``(n, c)``.
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
        Radford et al., Learning Transferable Visual Models From Natural Language Supervision,
        ICML 2021, arXiv:2103.00020, figure 3.

    Differs:
        In the paper, each image of a batch has one caption; here, images and captions can have
        several positives, whose shares of the target distribution are equal.

    Example:
        >>> import torch
        >>> scores, targets = torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.eye(2)
        >>> contrastive(scores, targets, torch.ones(2, 2, dtype=torch.bool)).round(decimals=4)
        tensor(0.3616)
    """
    rows = info_nce(scores, targets, known, temperature=temperature)
    columns = info_nce(scores.T, targets.T, known.T, temperature=temperature)
    return (rows + columns) / 2
