"""Regularize class-wise covariances with separate images, means and variances per label pair."""

import torch
from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    check_prediction_covariance_settings,
    prediction_covariance_batch,
    prediction_covariance_difference,
)


def class_covariance_pairwise(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize differences between pairwise correlations of negatives and their text similarities.

        R_ij = cov(p_i, p_j) / (sqrt(var p_i + epsilon) · sqrt(var p_j + epsilon))

    In this formula, p_i is the predicted probability of label i. Mean, variance and covariance of a
    label pair are computed only from the images where both labels are negative. In
    ``class_covariance``, mean and variance of a label are computed from all its negatives. The
    regularizer is the mean of (R_ij - S_ij)² over label pairs, where S_ij is the text similarity.
    If a label pair has few images, R_ij is unreliable; with two images, R_ij is close to -1 or 1.
    The matrix R is not always positive semi-definite.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the correlations are compared with. "cosine" is the cosine,
            "centered" is the cosine after the mean text vector is subtracted, and "minmax" is the
            cosine scaled linearly to [0, 1] over all label pairs.
        epsilon: Number added to each variance, >= 0. If the predictions of a label are nearly
            constant, ``epsilon`` keeps the correlations of the label close to 0.
        min_images: Smallest number of images where both labels of a pair are negative, >= 1. Label
            pairs with fewer images are left out.

    Returns:
        Scalar loss in [0, 4], ``()``, in float32 or a wider type. If no label pair is left, the
        loss is 0.

    Raises:
        InputError: If the step has no texts, or the shapes of its tensors do not match.
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax", or another setting
            is out of range.

    Source:
        None; ours, a variant of ``class_covariance``.

    Example:
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_covariance_pairwise(step).round(decimals=4)
        tensor(0.3351)
    """
    check_prediction_covariance_settings(epsilon, min_images)
    batch = prediction_covariance_batch(step, similarity)
    shared_images = batch.negative_weights.T @ batch.negative_weights
    correlation = _class_covariance_pairwise_correlation(
        batch.scores.sigmoid(), batch.negative_weights, shared_images, epsilon
    )
    return prediction_covariance_difference(
        correlation, batch.similarity, shared_images, min_images
    )


def _class_covariance_pairwise_correlation(
    p: Tensor, weights: Tensor, shared_images: Tensor, epsilon: float
) -> Tensor:
    """Return the correlation of each label pair over images where both weights are positive."""
    center = (weights * p).sum(0) / weights.sum(0).clip(min=1e-12)
    deviations = weights * (p - center.detach())  # any constant cancels; this one rounds least
    counts = shared_images.clip(min=1e-12)
    means = deviations.T @ weights / counts  # mean of the row's label over the images of the pair
    squares = (deviations * (p - center.detach())).T @ weights / counts
    variance = (squares - means.square()).clip(min=0) + epsilon
    variance = torch.where(variance > 0, variance, 1.0)
    covariance = deviations.T @ deviations / counts - means * means.T
    return covariance / (variance.sqrt() * variance.T.sqrt())
