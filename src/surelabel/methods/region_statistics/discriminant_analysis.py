"""Fit linear discriminant analysis with a shared, shrunk covariance."""

import torch
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes

MIN_RELATIVE_VARIANCE = 1e-6  # smallest variance relative to the mean squared vector length


def linear_discriminant_analysis(
    vectors: Tensor, classes: Tensor, weights: Tensor, *, count: int
) -> tuple[Tensor, Tensor]:
    """Return the weights and biases of linear discriminant analysis with a shrunk covariance.

        g_c(x) = x' S^-1 mu_c - mu_c' S^-1 mu_c / 2        mu_c: weighted mean
        S = (1 - a) Sigma + a · tr(Sigma) / d · I          a = d / (m - 1 + d)

    g_c(x) is the score of class c for vector x, and x' is the transpose of x. mu_c is the weighted
    mean of class c, S the shrunk covariance matrix, and a the shrinkage. Sigma is the unweighted
    covariance of the m vectors of width d around the means of their classes, and I is the identity
    matrix. The mean variance tr(Sigma) / d is at least a millionth of the mean squared element of
    the vectors, so that S can be inverted.

    Args:
        vectors: Training vectors, ``(m, d)``.
        classes: Class of each vector, whole numbers below ``count``, ``(m,)``.
        weights: Weight of each vector in the mean of its class, > 0, ``(m,)``.
        count: Number of classes (c).

    Returns:
        Weights ``(c, d)`` and biases ``(c,)``, both with mean 0 over the classes that have vectors.
        If a class has no vectors, the weights and the bias of the class are 0. All results are
        finite if the vectors are finite.

    Raises:
        InputError: If the shapes do not match, or there is no vector.

    Source:
        PIAA (ICML 2026), as in its authors' code, github.com/akang-wang/PIAA. The shrinkage a is
        that of Wang et al., A Hard-to-Beat Baseline for Training-free CLIP-based Adaptation, ICLR
        2024, arXiv:2402.04087.

    Differs:
        The term log(1 / c) of the biases is omitted, because it is equal for all c classes.

    Example:
        >>> x = torch.tensor([[0.0, 1.0], [0.0, 3.0], [4.0, 1.0], [4.0, 3.0]])
        >>> classes = torch.tensor([0, 0, 1, 1])
        >>> slopes, _ = linear_discriminant_analysis(x, classes, torch.ones(4), count=2)
        >>> slopes.round(decimals=4)
        tensor([[-10.,   0.],
                [ 10.,   0.]])
    """
    sizes = check_shapes(vectors=(vectors, "m d"), classes=(classes, "m"), weights=(weights, "m"))
    m, d = sizes["m"], sizes["d"]
    if not m:
        raise InputError("vectors must contain one vector or more; got none.")
    means, has_vectors = _discriminant_class_means(vectors, classes, weights, count)
    centred = vectors - means[classes].to(vectors.dtype)
    sigma = (centred.T @ centred / m).double()
    mean_square = vectors.square().sum(dim=1).mean().double()
    min_variance = MIN_RELATIVE_VARIANCE * float(mean_square) / d + torch.finfo().tiny
    mean_variance = (sigma.trace() / d).clamp(min=min_variance)
    a = d / (m - 1 + d)
    identity = torch.eye(d, dtype=sigma.dtype, device=sigma.device)
    s = (1 - a) * sigma + a * mean_variance * identity
    slopes = torch.linalg.solve(s, means.T).T
    biases = -(slopes * means).sum(dim=1) / 2
    dtype = vectors.dtype
    return _center_discriminants_over_classes(slopes, has_vectors).to(
        dtype
    ), _center_discriminants_over_classes(biases, has_vectors).to(dtype)


def _discriminant_class_means(
    vectors: Tensor, classes: Tensor, weights: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """Return the weighted class means ``(c, d)`` in float64, and a mask of classes with vectors."""
    weights = weights.double()
    totals = torch.zeros(count, dtype=torch.float64, device=vectors.device)
    totals.index_add_(0, classes, weights)
    sums = torch.zeros(count, vectors.shape[1], dtype=torch.float64, device=vectors.device)
    sums.index_add_(0, classes, weights[:, None] * vectors)
    has_vectors = totals > 0
    return sums / torch.where(has_vectors, totals, 1.0)[:, None], has_vectors


def _center_discriminants_over_classes(values: Tensor, has_vectors: Tensor) -> Tensor:
    """Subtract the mean over the classes with vectors, and set the other classes to 0."""
    centred = values - values[has_vectors].mean(dim=0)
    centred[~has_vectors] = 0
    return centred
