"""Correlation of the predictions of two labels, compared with the similarity of their texts."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.records import TrainingStep
from surelabel.shapes import check_shapes

TextSimilarity = Literal["cosine", "centered", "minmax"]


@dataclass(frozen=True)
class CovarianceBatch:
    """Tensors of one training step that the covariance regularizers need.

    Attributes:
        scores: Log-odds if the step has them, otherwise scores, float32 or wider, ``(n, c)``; 0
            where the target is unknown.
        negative_weights: 1 - target where it is known, 0 elsewhere, ``(n, c)``.
        known_weights: 1 where the target is known, 0 elsewhere, ``(n, c)``.
        n_images: Number of images with a known target, >= 1, ``()``.
        similarity: Similarity of the texts of two labels, ``(c, c)``.
    """

    scores: Tensor
    negative_weights: Tensor
    known_weights: Tensor
    n_images: Tensor
    similarity: Tensor


def covariance_batch(step: TrainingStep, similarity: TextSimilarity) -> CovarianceBatch:
    """Compute the tensors that the covariance regularizers need of a training step.

    Args:
        step: Training step with text vectors.
        similarity: Kind of text similarity: "cosine", "centered" or "minmax".

    Raises:
        InputError: If the step has no texts, or its tensors differ in shape.
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax".
    """
    if step.texts is None:
        raise InputError(
            "A covariance regularizer needs the text vectors of the labels, step.texts (c, d); got "
            "None. Use a text encoder, or a regularizer without texts, such as label_pair."
        )
    step_scores = step.scores if step.logits is None else step.logits
    check_shapes(
        z=(step_scores, "n c"),
        targets=(step.targets, "n c"),
        known=(step.known, "n c"),
        texts=(step.texts, "c d"),
    )
    scores = step_scores.to(torch.promote_types(step_scores.dtype, torch.float32))
    known = step.known.to(scores.dtype)
    return CovarianceBatch(
        scores=torch.where(step.known, scores, 0.0),
        negative_weights=torch.where(step.known, 1 - step.targets.to(scores.dtype), 0.0),
        known_weights=known,
        n_images=known.amax(dim=1).sum().clip(min=1) if known.numel() else known.new_ones(()),
        similarity=text_similarity(step.texts.detach().to(scores), similarity),
    )


def text_similarity(texts: Tensor, similarity: TextSimilarity) -> Tensor:
    """Return the similarity of each pair of texts, ``(c, c)``.

    Args:
        texts: Text vectors of the labels, ``(c, d)``.
        similarity: "cosine": the cosine. "centered": the cosine after the mean vector is
            subtracted, possibly negative. "minmax": the cosine, scaled so that the pairs of two
            different labels range over [0, 1].

    Raises:
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax".
    """
    if similarity not in ("cosine", "centered", "minmax"):
        raise ConfigError(
            f'similarity must be "cosine", "centered" or "minmax"; got {similarity!r}. Use '
            f'"cosine" by default.'
        )
    if similarity == "centered":
        texts = texts - texts.mean(dim=0)
    unit_vectors = F.normalize(texts, dim=1)
    cosine = unit_vectors @ unit_vectors.T
    if similarity != "minmax" or len(texts) < 2:
        return cosine
    pairs = cosine[off_diagonal_mask(cosine)]
    return (cosine - pairs.min()) / (pairs.max() - pairs.min()).clip(min=1e-12)


def weighted_correlation(
    columns: Tensor, weights: Tensor, n_images: Tensor, epsilon: float
) -> Tensor:
    """Return the correlation of the columns about their weighted means, ``(c, c)``.

    Args:
        columns: Predictions of each label, ``(n, c)``.
        weights: Weights of the predictions, ``(n, c)``.
        n_images: Number of images that the covariance is divided by, ``()``.
        epsilon: Number added to each variance, >= 0.
    """
    means = (weights * columns).sum(0) / weights.sum(0).clip(min=1e-12)
    deviations = weights * (columns - means)
    return covariance_to_correlation(deviations.T @ deviations / n_images, epsilon)


def covariance_to_correlation(covariance: Tensor, epsilon: float) -> Tensor:
    """Divide each entry by the square roots of its two variances plus ``epsilon``."""
    variance = covariance.diagonal() + epsilon
    deviation = torch.where(variance > 0, variance, 1.0).sqrt()
    return covariance / (deviation[:, None] * deviation)


def mean_squared_difference(
    correlation: Tensor, similarity: Tensor, shared_images: Tensor, min_images: int
) -> Tensor:
    """Return the mean squared difference over the pairs of two labels, ``()``.

    Args:
        correlation: Correlation of the predictions of two labels, ``(c, c)``.
        similarity: Similarity of the texts of two labels, ``(c, c)``.
        shared_images: Number of images that count for both labels, ``(c, c)``.
        min_images: Smallest number of shared images of a pair that counts.
    """
    is_counted = (shared_images >= min_images) & off_diagonal_mask(shared_images)
    differences = torch.where(is_counted, correlation - similarity, 0.0)
    return differences.square().sum() / is_counted.sum().clip(min=1)


def off_diagonal_mask(square: Tensor) -> Tensor:
    """Return True where row and column of a square matrix differ."""
    return ~torch.eye(len(square), dtype=torch.bool, device=square.device)
