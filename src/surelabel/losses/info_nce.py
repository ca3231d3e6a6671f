"""InfoNCE with several positives: a softmax over the labels of each picture."""

import math

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links.spa import SCORE_LIMIT
from surelabel.shapes import check_shapes

LEAST, MOST = 1e-6, 1e6  # of a temperature


def info_nce(scores: Tensor, targets: Tensor, known: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Charge each picture for what a softmax over its labels gives to labels that are absent.

        of a picture: -Σ y · log(q) / Σ y     q = softmax of score / T over its known labels
        loss:         mean over pictures with a positive

    The gradient of a picture is (q - y / Σ y) / T, so its positives are drawn to one height. It
    compares scores inside a picture only: they have no level, and no link makes them log-odds.
    ``multi_matching`` is the same over all pictures of a batch at once.

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
        van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018,
        arXiv:1807.03748; with several positives as "MMC without batch" in table 10 of
        Recover and Match, CVPR 2025, arXiv:2503.15337.

    Differs:
        Unknown labels are left out of the softmax. Graded targets are shares of the positives, and
        a picture counts by its largest target in the mean. Scores beyond 1e30 count as 1e30.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0]])
        >>> info_nce(scores, targets, torch.ones(1, 2, dtype=torch.bool)).round(decimals=4)
        tensor(0.1269)
    """
    if not (math.isfinite(temperature) and LEAST <= temperature <= MOST):
        raise ConfigError(f"temperature must be from {LEAST} to {MOST:.0f}. Got {temperature}.")
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if not scores.numel():
        return scores.sum()
    scores = scores.clip(-SCORE_LIMIT, SCORE_LIMIT) / temperature
    present = torch.where(known, targets.to(scores.dtype), 0.0)
    tiny = torch.finfo(scores.dtype).tiny
    shares = present / present.sum(1, keepdim=True).clamp(min=tiny)
    counted = known | ~known.any(1, keepdim=True)  # where nothing is known, anything finite will do
    whole = torch.where(counted, scores, -torch.inf).logsumexp(1, keepdim=True)
    costs = (shares * (whole - scores)).sum(1)
    counts = present.amax(1)
    return (counts * costs).sum() / counts.sum().clamp(min=tiny)
