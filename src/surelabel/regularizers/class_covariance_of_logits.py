"""Class-wise covariance of log-odds, with a gradient also for predictions near 0."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    covariance_batch,
    mean_squared_difference,
    weighted_correlation,
)


def class_covariance_of_logits(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize the difference between log-odds correlation and text similarity of negatives.

    The formula of ``class_covariance`` with the log-odds instead of p, or with the scores if the
    loss has no strictly increasing link. Predictions near 0 or 1 keep their gradient.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the correlations are compared with. "cosine": the cosine.
            "centered": the cosine after the mean text vector is subtracted, possibly negative.
            "minmax": the cosine, scaled to the range [0, 1].
        epsilon: Number added to each variance, >= 0; it keeps labels of nearly constant log-odds
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
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_covariance_of_logits(step).round(decimals=4)
        tensor(0.1818)
    """
    batch = covariance_batch(step, similarity)
    correlation = weighted_correlation(
        batch.scores, batch.negative_weights, batch.n_images, epsilon
    )
    shared_images = batch.negative_weights.T @ batch.negative_weights
    return mean_squared_difference(correlation, batch.similarity, shared_images, min_images)
