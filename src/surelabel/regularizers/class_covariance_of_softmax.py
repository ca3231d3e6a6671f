"""Regularize class-wise covariances of softmax probabilities, for contrastive losses."""

import math

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    check_prediction_covariance_settings,
    prediction_correlation,
    prediction_covariance_batch,
    prediction_covariance_difference,
)


def class_covariance_of_softmax(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    temperature: float = 1.0,
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize differences between softmax correlations of negatives and text similarities.

        p = softmax of z / T over the known labels of the image

    In this formula, z is the log-odds and T the temperature. The formula is that of
    ``class_covariance`` with this p. Use this regularizer for losses with a softmax over labels,
    such as ``info_nce``, and for pairs of images and captions. For pairs, the texts of a batch are
    used as labels: ``scores`` are the similarities of images and captions divided by the
    temperature of the contrastive loss. ``targets`` are 1 for the captions of an image, and
    ``texts`` are the caption vectors of the frozen text encoder. Only images that match neither of
    two captions then contribute to the covariance of these captions.

    Args:
        step: Training step with text vectors. If the step has no log-odds, z is the score.
        similarity: Text similarity that the correlations are compared with. "cosine" is the cosine,
            "centered" is the cosine after the mean text vector is subtracted, and "minmax" is the
            cosine scaled linearly to [0, 1] over all label pairs.
        temperature: Divisor of z (tau), > 0.
        epsilon: Number added to each variance, >= 0. The probabilities of c labels are about 1 / c,
            so their variances are small if c is large. ``epsilon`` keeps the correlations of labels
            with smaller variances close to 0.
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
        Zhou et al., Rethinking BCE Loss for Multi-Label Image Recognition with Fine-Tuning,
        CVPR 2026, supplement, table 10: contrastive training on images and captions. The supplement
        has no formula for this case. The softmax and the targets are ours.

    Example:
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_covariance_of_softmax(step).round(decimals=4)
        tensor(0.9999)
    """
    check_prediction_covariance_settings(epsilon, min_images)
    if not 0 < temperature < math.inf:
        raise ConfigError(
            f"temperature must be above 0; got {temperature}. Use the temperature of the loss, or "
            "1 for no effect."
        )
    batch = prediction_covariance_batch(step, similarity)
    in_softmax = step.known | ~step.known.any(1, keepdim=True)  # keeps unknown images finite
    probabilities = (batch.scores / temperature).masked_fill(~in_softmax, -torch.inf).softmax(1)
    correlation = prediction_correlation(
        probabilities, batch.negative_weights, batch.n_images, epsilon
    )
    shared_images = batch.negative_weights.T @ batch.negative_weights
    return prediction_covariance_difference(
        correlation, batch.similarity, shared_images, min_images
    )
