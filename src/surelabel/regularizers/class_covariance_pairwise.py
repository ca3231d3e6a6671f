"""Class-wise covariance with means and variances of every pair's own pictures."""

import torch
from torch import Tensor

from surelabel.records import Step
from surelabel.regularizers.covariance import Target, batch_of, mean_squared_gap


def class_covariance_pairwise(
    step: Step, *, target: Target = "cosine", epsilon: float = 1e-6, least: int = 4
) -> Tensor:
    """Ask the same as ``class_covariance``, each pair judged by its own pictures alone.

        over the pictures where both i and j are absent, N_ij of them:
        R_ij = cov(p_i, p_j) / (sqrt(var p_i + epsilon) · sqrt(var p_j + epsilon))

    Mean, variance and covariance of a pair are unbiased by the other pictures; with few pictures
    R is extreme (two of them give -1 or 1), and the matrix need not be that of any distribution.

    Args:
        step: One training step, with texts.
        target: What the correlations are held against, as in ``class_covariance``.
        epsilon: Keeps labels whose predictions hardly vary near correlation 0, >= 0.
        least: A pair of labels absent together in fewer pictures than this is left out.

    Returns:
        One number in [0, 4], ``()``, float32 at least; 0 where no pair is left.

    Raises:
        InputError: the step has no texts, or its parts differ in shape.
        ConfigError: ``target`` is not one of the three.

    Source:
        none; ours, a variant of ``class_covariance``.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> absent = torch.zeros(4, 2)
        >>> step = Step(scores, scores, absent, absent == 0, texts=torch.eye(2))
        >>> class_covariance_pairwise(step).round(decimals=4)
        tensor(0.3351)
    """
    batch = batch_of(step, target)
    shared = batch.inactive.T @ batch.inactive
    together = _pairwise(batch.values.sigmoid(), batch.inactive, shared, epsilon)
    return mean_squared_gap(together, batch.alike, shared, least)


def _pairwise(p: Tensor, inactive: Tensor, shared: Tensor, epsilon: float) -> Tensor:
    """Correlation of each two columns over the pictures that weigh in both, ``(c, c)``."""
    middle = (inactive * p).sum(0) / inactive.sum(0).clip(min=1e-12)
    apart = inactive * (p - middle.detach())  # any constant cancels; this one keeps digits
    counts = shared.clip(min=1e-12)
    means = apart.T @ inactive / counts  # of the row's label, over the pair's pictures
    squares = (apart * (p - middle.detach())).T @ inactive / counts
    variance = (squares - means.square()).clip(min=0) + epsilon
    variance = torch.where(variance > 0, variance, 1.0)
    covariance = apart.T @ apart / counts - means * means.T
    return covariance / (variance.sqrt() * variance.T.sqrt())
