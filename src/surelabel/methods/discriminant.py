"""What tells classes apart that spread alike around their means."""

import torch
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes

SMALLEST = 1e-6  # of the squared length of vectors: they are all the same below


def discriminant(
    vectors: Tensor, classes: Tensor, weights: Tensor, *, count: int
) -> tuple[Tensor, Tensor]:
    """Linear scores of classes that share one covariance.

        g_c(x) = x' S^-1 mu_c - mu_c' S^-1 mu_c / 2        mu_c: weighted mean
        S = (1 - a) Sigma + a · tr(Sigma) / d · I          a = d / (m - 1 + d)

    Args:
        vectors: ``(m, d)``.
        classes: Which class each shows, ``(m,)``, whole numbers below ``count``.
        weights: How sure that is, above 0, ``(m,)``.
        count: How many classes there are (c).

    Returns:
        What a vector is multiplied with, ``(c, d)``, and what is added, ``(c,)``, both less their
        mean over the classes that have vectors; 0 for a class that has none. Finite whatever the
        vectors are.

    Raises:
        InputError: shapes do not fit, or there is no vector.

    Source:
        PIAA (ICML 2026), as its authors' code has it, github.com/akang-wang/PIAA; for a Wang et
        al., A Hard-to-Beat Baseline for Training-free CLIP-based Adaptation, ICLR 2024,
        arXiv:2402.04087.

    Differs:
        No log(1 / c), which all classes have alike.

    Example:
        >>> x = torch.tensor([[0.0, 1.0], [0.0, 3.0], [4.0, 1.0], [4.0, 3.0]])
        >>> slopes, _ = discriminant(x, torch.tensor([0, 0, 1, 1]), torch.ones(4), count=2)
        >>> slopes.round(decimals=4)
        tensor([[-10.,   0.],
                [ 10.,   0.]])
    """
    sizes = check_shapes(vectors=(vectors, "m d"), classes=(classes, "m"), weights=(weights, "m"))
    m, d = sizes["m"], sizes["d"]
    if not m:
        raise InputError("vectors must be one or more. Got none.")
    means, found = _means(vectors, classes, weights, count)
    apart = vectors - means[classes].to(vectors.dtype)
    sigma = (apart.T @ apart / m).double()
    size = vectors.square().sum(dim=1).mean().double()
    level = (sigma.trace() / d).clamp(min=SMALLEST * float(size) / d + torch.finfo().tiny)
    a = d / (m - 1 + d)
    s = (1 - a) * sigma + a * level * torch.eye(d, dtype=sigma.dtype, device=sigma.device)
    slopes = torch.linalg.solve(s, means.T).T
    levels = -(slopes * means).sum(dim=1) / 2
    return _less_the_mean(slopes, found, vectors), _less_the_mean(levels, found, vectors)


def _means(vectors: Tensor, classes: Tensor, weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Weighted means ``(c, d)`` in float64, and which classes have one."""
    weights = weights.double()
    total = torch.zeros(count, dtype=torch.float64, device=vectors.device)
    total.index_add_(0, classes, weights)
    sums = torch.zeros(count, vectors.shape[1], dtype=torch.float64, device=vectors.device)
    sums.index_add_(0, classes, weights[:, None] * vectors)
    found = total > 0
    return sums / torch.where(found, total, 1.0)[:, None], found


def _less_the_mean(values: Tensor, found: Tensor, like: Tensor) -> Tensor:
    centred = values - values[found].mean(dim=0)
    centred[~found] = 0
    return centred.to(like.dtype)
