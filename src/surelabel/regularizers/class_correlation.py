"""Regularize the correlation of the predictions of two labels over all images, with positives."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    check_prediction_covariance_settings,
    prediction_correlation,
    prediction_covariance_batch,
    prediction_covariance_difference,
)


def class_correlation(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize differences between correlations of predictions and similarities of label texts.

    The formula is that of ``class_covariance``, but m is 1 for every known target, positive or
    negative. ``class_covariance`` uses only negatives. To measure the effect of this restriction,
    compare the two regularizers.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the correlations are compared with. "cosine" is the cosine,
            "centered" is the cosine after the mean text vector is subtracted, and "minmax" is the
            cosine scaled linearly to [0, 1] over all label pairs.
        epsilon: Number added to each variance, >= 0. If the predictions of a label are nearly
            constant, ``epsilon`` keeps the correlations of the label close to 0.
        min_images: Smallest number of images where the targets of both labels of a pair are known,
            >= 1. Label pairs with fewer images are left out.

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
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_correlation(step).round(decimals=4)
        tensor(0.3351)
    """
    check_prediction_covariance_settings(epsilon, min_images)
    batch = prediction_covariance_batch(step, similarity)
    correlation = prediction_correlation(
        batch.scores.sigmoid(), batch.known_weights, batch.n_images, epsilon
    )
    shared_images = batch.known_weights.T @ batch.known_weights
    return prediction_covariance_difference(
        correlation, batch.similarity, shared_images, min_images
    )
