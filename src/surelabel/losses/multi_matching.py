"""Multi-matching contrastive loss: a softmax over all labels of all pictures of a batch."""

from torch import Tensor

from surelabel.losses.info_nce import info_nce
from surelabel.shapes import check_shapes


def multi_matching(
    scores: Tensor, targets: Tensor, known: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """Charge a batch for what one softmax over all its decisions gives to labels that are absent.

        loss: -Σ y · log(q) / Σ y     q = softmax of score / T over all known labels of all pictures

    The gradient is (q - y / Σ y) / T, which sums to 0 over the batch: positives of all pictures are
    lifted above negatives of all pictures. It compares scores only, so a constant added to all of
    them changes nothing: they have no level, and no link makes them log-odds. It sees one batch at
    a time, and its value grows with the logarithm of the batch. ``info_nce`` is the same picture by
    picture.

    Args:
        scores: Of the method, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``; the others have no influence.
        temperature: What the scores are divided by (tau), in [1e-6, 1e6].

    Returns:
        One number, ``()``, in nats, float32 at least; 0 for a batch that has no positive.

    Raises:
        InputError: ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: ``temperature`` is out of its range.

    Source:
        Recover and Match: Open-Vocabulary Multi-Label Recognition through Knowledge-Constrained
        Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.4.

    Differs:
        Unknown labels are left out of the softmax, and graded targets are shares of the positives;
        the authors have neither. Scores beyond 1e30 count as 1e30.

    Example:
        >>> import torch
        >>> scores, targets = torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
        >>> multi_matching(scores, targets, torch.ones(2, 2, dtype=torch.bool)).round(decimals=4)
        tensor(1.3863)
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    batch = (values.reshape(1, -1) for values in (scores, targets, known))
    return info_nce(*batch, temperature=temperature)
