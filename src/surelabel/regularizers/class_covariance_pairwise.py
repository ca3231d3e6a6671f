"""Class-wise covariance with separate images, means and variances for each pair."""

import torch
from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    covariance_batch,
    mean_squared_difference,
)


def class_covariance_pairwise(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize the difference between pairwise correlation and text similarity of negatives.

        over the images where both i and j are negative, N_ij of them:
        R_ij = cov(p_i, p_j) / (sqrt(var p_i + epsilon) · sqrt(var p_j + epsilon))

    As ``class_covariance``, but mean, variance and covariance of a pair use only its images. With
    few images R is extreme: two images give -1 or 1. R need not be positive semi-definite.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the correlations are compared with. "cosine": the cosine.
            "centered": the cosine after the mean text vector is subtracted, possibly negative.
            "minmax": the cosine, scaled to the range [0, 1].
        epsilon: Number added to each variance, >= 0; it keeps labels of nearly constant predictions
            near correlation 0.
        min_images: Smallest number of images where both labels are negative, for a pair to count.

    Returns:
        Loss in [0, 4], ``()``, float32 or wider; 0 if no pair is left.

    Raises:
        InputError: If the step has no texts, or its tensors differ in shape.
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax".

    Source:
        None; ours, a variant of ``class_covariance``.

    Example:
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_covariance_pairwise(step).round(decimals=4)
        tensor(0.3351)
    """
    batch = covariance_batch(step, similarity)
    shared_images = batch.negative_weights.T @ batch.negative_weights
    correlation = _pairwise_correlation(
        batch.scores.sigmoid(), batch.negative_weights, shared_images, epsilon
    )
    return mean_squared_difference(correlation, batch.similarity, shared_images, min_images)


def _pairwise_correlation(
    p: Tensor, weights: Tensor, shared_images: Tensor, epsilon: float
) -> Tensor:
    """Return the correlation of two columns over the images weighted in both, ``(c, c)``."""
    center = (weights * p).sum(0) / weights.sum(0).clip(min=1e-12)
    deviations = weights * (p - center.detach())  # any constant cancels; this is the most exact
    counts = shared_images.clip(min=1e-12)
    means = deviations.T @ weights / counts  # of the row's label, over the images of the pair
    squares = (deviations * (p - center.detach())).T @ weights / counts
    variance = (squares - means.square()).clip(min=0) + epsilon
    variance = torch.where(variance > 0, variance, 1.0)
    covariance = deviations.T @ deviations / counts - means * means.T
    return covariance / (variance.sqrt() * variance.T.sqrt())
