"""Second moment of the confidence in negatives."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    covariance_batch,
    covariance_to_correlation,
    mean_squared_difference,
)


def class_second_moment(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize the difference between second moment and text similarity of negatives.

        m = 1 - y,  q = 1 - p,  C_ij = Σ m_i m_j q_i q_j / n

    C is normalized to a diagonal of 1 and compared as in ``class_covariance``. The entries lie in
    [0, 1], as most cosines of texts do. With confident negatives all entries are close to 1, and
    the gradient is small.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the moments are compared with. "cosine": the cosine.
            "centered": the cosine after the mean text vector is subtracted, possibly negative.
            "minmax": the cosine, scaled to the range [0, 1].
        epsilon: Number added to the diagonal before the square root, >= 0.
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
        >>> class_second_moment(step).round(decimals=4)
        tensor(0.9904)
    """
    batch = covariance_batch(step, similarity)
    confidence = batch.negative_weights * (-batch.scores).sigmoid()
    moment = covariance_to_correlation(confidence.T @ confidence / batch.n_images, epsilon)
    shared_images = batch.negative_weights.T @ batch.negative_weights
    return mean_squared_difference(moment, batch.similarity, shared_images, min_images)
