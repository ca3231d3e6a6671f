"""Pairwise ranking loss: every positive a margin above every negative of its picture."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes


def ranking(
    scores: Tensor, targets: Tensor, known: Tensor, *, margin: float = 1.0, scale: float = 1.0
) -> Tensor:
    """Charge each pair of labels of a picture whose order is wrong, or right by too little.

        of a picture: Σ over t != s of  y_t · (1 - y_s) · max(0, margin - scale · (x_t - x_s))
        loss:         mean over pictures

    It compares scores inside a picture only: they have no level, and no link makes them log-odds.

    Args:
        scores: Of the method, x, ``(n, c)``, any finite number.
        targets: 1 where the label is present, 0 where absent, in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``; the others have no influence.
        margin: How far above a negative a positive costs nothing (m), >= 0.
        scale: What the scores are multiplied by (s), > 0.

    Returns:
        One number, ``()``, float32 at least.

    Raises:
        InputError: ``scores``, ``targets`` and ``known`` differ in shape.
        ConfigError: ``margin`` or ``scale`` is out of its range.

    Source:
        The ranking loss of Guo et al., Texts as Images in Prompt Tuning for Multi-Label Image
        Recognition, CVPR 2023, arXiv:2211.12739.

    Differs:
        Pairs are never formed: sorted scores and running sums give the same number in
        c · log c steps. Graded targets count as the mean over independent labels that are present
        with those probabilities. ``scale`` is 1 as in the authors' runs; their function says 2.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 1.5, 0.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> ranking(scores, targets, torch.ones(1, 3, dtype=torch.bool))
        tensor(0.5000)
    """
    if not (math.isfinite(margin) and margin >= 0):
        raise ConfigError(f"margin must be a finite number >= 0. Got {margin}.")
    if not (math.isfinite(scale) and scale > 0):
        raise ConfigError(f"scale must be a finite number above 0. Got {scale}.")
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"), known=(known, "n c"))
    x = scale * scores.double()  # long running sums lose too much in float32
    present = torch.where(known, targets.double(), 0.0)
    absent = torch.where(known, 1 - targets.double(), 0.0)
    ascending, order = x.sort(dim=1)
    weights = absent.gather(1, order)
    edge = x - margin  # a positive pays for all negatives above its edge
    first = torch.searchsorted(ascending.detach(), edge.detach(), right=True)
    mass = _sums_to_the_end(weights).gather(1, first)
    moment = _sums_to_the_end(weights * ascending).gather(1, first)
    with_itself = margin * absent
    costs = present * (moment - edge * mass - with_itself)
    mean = costs.sum() / max(len(scores), 1)
    return mean.to(torch.promote_types(scores.dtype, torch.float32))


def _sums_to_the_end(values: Tensor) -> Tensor:
    """Sums of each row from every place to its end, and 0 past the end, ``(n, c + 1)``."""
    return F.pad(values.flip(1).cumsum(1).flip(1), (0, 1))
