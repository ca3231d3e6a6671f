"""Compare the correlation of the predictions of two labels with the similarity of their texts."""

import math
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
    """Tensors of a training step that the covariance regularizers need.

    Attributes:
        scores: Log-odds of c labels for n images, or scores if the step has no log-odds, float32 or
            wider, ``(n, c)``. If a target is unknown, the score is 0.
        negative_weights: Weight of each label as a negative, ``(n, c)``: 1 - target, or 0 if the
            target is unknown.
        known_weights: Weight of each known target, ``(n, c)``: 1 if the target is known, otherwise
            0.
        n_images: Number of images with a known target, >= 1, ``()``.
        similarity: Similarity of the texts of each label pair, ``(c, c)``.
    """

    scores: Tensor
    negative_weights: Tensor
    known_weights: Tensor
    n_images: Tensor
    similarity: Tensor


def prediction_covariance_batch(step: TrainingStep, similarity: TextSimilarity) -> CovarianceBatch:
    """Compute the tensors of a training step that the covariance regularizers need.

    Args:
        step: Training step with text vectors.
        similarity: Kind of text similarity: "cosine", "centered" or "minmax".

    Raises:
        InputError: If the step has no texts, or the shapes of its tensors do not match.
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax".
    """
    if step.texts is None:
        raise InputError(
            "A covariance regularizer needs the text vectors of the labels, step.texts (c, d); got "
            "None. Use an encoder with a text tower, or another regularizer, such as label_pair."
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
        similarity=prediction_covariance_text_similarity(
            step.texts.detach().to(scores), similarity
        ),
    )


def check_prediction_covariance_settings(epsilon: float, min_images: int) -> None:
    """Check that the settings of a covariance regularizer are in range.

    Raises:
        ConfigError: If ``epsilon`` is below 0 or infinite, or ``min_images`` is below 1.
    """
    if not 0 <= epsilon < math.inf:
        raise ConfigError(f"epsilon must be 0 or more; got {epsilon}. The default is 1e-6.")
    if min_images < 1:
        raise ConfigError(f"min_images must be 1 or more; got {min_images}. The default is 4.")


def prediction_covariance_text_similarity(texts: Tensor, similarity: TextSimilarity) -> Tensor:
    """Return the similarity of each pair of texts, ``(c, c)``.

    Args:
        texts: Text vectors of c labels, of width d, ``(c, d)``.
        similarity: Kind of similarity: "cosine" for the cosine, "centered" for the cosine after the
            mean vector is subtracted, "minmax" for the cosine scaled linearly to [0, 1] over
            pairs of different labels.

    Raises:
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax".
    """
    if similarity not in ("cosine", "centered", "minmax"):
        raise ConfigError(
            f'similarity must be "cosine", "centered" or "minmax"; got {similarity!r}. The '
            f'default is "cosine".'
        )
    if similarity == "centered":
        texts = texts - texts.mean(dim=0)
    unit_vectors = F.normalize(texts, dim=1)
    cosine = unit_vectors @ unit_vectors.T
    if similarity != "minmax" or len(texts) < 2:
        return cosine
    pairs = cosine[prediction_covariance_off_diagonal(cosine)]
    return (cosine - pairs.min()) / (pairs.max() - pairs.min()).clip(min=1e-12)


def prediction_correlation(
    columns: Tensor, weights: Tensor, n_images: Tensor, epsilon: float
) -> Tensor:
    """Return the weighted correlation of the predictions of each label pair, ``(c, c)``.

    Args:
        columns: Predictions for n images and c labels, ``(n, c)``.
        weights: Weights of the predictions, ``(n, c)``.
        n_images: Number of images that the covariance is divided by, ``()``.
        epsilon: Number added to each variance, >= 0.
    """
    means = (weights * columns).sum(0) / weights.sum(0).clip(min=1e-12)
    deviations = weights * (columns - means)
    return prediction_covariance_to_correlation(deviations.T @ deviations / n_images, epsilon)


def prediction_covariance_to_correlation(covariance: Tensor, epsilon: float) -> Tensor:
    """Return the covariance ``(c, c)``, divided by the standard deviations sqrt(C_ii + epsilon).

    If a variance is 0 and ``epsilon`` is 0, the standard deviation is replaced by 1.
    """
    variance = covariance.diagonal() + epsilon
    deviation = torch.where(variance > 0, variance, 1.0).sqrt()
    return covariance / (deviation[:, None] * deviation)


def prediction_covariance_difference(
    correlation: Tensor, similarity: Tensor, shared_images: Tensor, min_images: int
) -> Tensor:
    """Return the mean squared difference of correlation and similarity over label pairs, ``()``.

    Args:
        correlation: Correlation of the predictions of each label pair, ``(c, c)``.
        similarity: Similarity of the texts of each label pair, ``(c, c)``.
        shared_images: Number of images that are used for both labels of each pair, ``(c, c)``.
        min_images: Smallest number of shared images. Label pairs with fewer shared images are left
            out.
    """
    is_counted = (shared_images >= min_images) & prediction_covariance_off_diagonal(shared_images)
    differences = torch.where(is_counted, correlation - similarity, 0.0)
    return differences.square().sum() / is_counted.sum().clip(min=1)


def prediction_covariance_off_diagonal(square: Tensor) -> Tensor:
    """Return a mask that is True off the diagonal of a square matrix."""
    return ~torch.eye(len(square), dtype=torch.bool, device=square.device)
