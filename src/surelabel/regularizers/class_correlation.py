"""Correlation of predictions over all images, positives included."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    covariance_batch,
    mean_squared_difference,
    weighted_correlation,
)


def class_correlation(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize the difference between prediction correlation and text similarity of labels.

    The formula of ``class_covariance`` with m = 1 at each known target, positive or negative. The
    difference of both regularizers shows the effect of the restriction to negatives.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the correlations are compared with. "cosine": the cosine.
            "centered": the cosine after the mean text vector is subtracted, possibly negative.
            "minmax": the cosine, scaled to the range [0, 1].
        epsilon: Number added to each variance, >= 0; it keeps labels of nearly constant predictions
            near correlation 0.
        min_images: Smallest number of images where both labels are known, for a pair to count.

    Returns:
        Loss in [0, 4], ``()``, float32 or wider; 0 if no pair is left.

    Raises:
        InputError: If the step has no texts, or its tensors differ in shape.
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax".

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
    batch = covariance_batch(step, similarity)
    correlation = weighted_correlation(
        batch.scores.sigmoid(), batch.known_weights, batch.n_images, epsilon
    )
    shared_images = batch.known_weights.T @ batch.known_weights
    return mean_squared_difference(correlation, batch.similarity, shared_images, min_images)
