"""Compare second moments of the probability 1 - p of negatives with the similarity of texts."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    check_prediction_covariance_settings,
    prediction_covariance_batch,
    prediction_covariance_difference,
    prediction_covariance_to_correlation,
)


def class_second_moment(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize differences between second moments of negatives and their text similarities.

        m = 1 - y,  q = 1 - p,  C_ij = Σ m_i m_j q_i q_j / n

    In this formula, y is the target, p is the predicted probability, n is the number of images with
    a known target and the sum is over images. C is normalized to a diagonal of 1 and compared with
    the text similarity as in ``class_covariance``. The entries of the normalized C and most cosines
    of texts are in [0, 1]. If most labels are negative and have a low probability, the entries of
    the normalized C are close to 1 and the gradient is small.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the moments are compared with. "cosine" is the cosine,
            "centered" is the cosine after the mean text vector is subtracted, and "minmax" is the
            cosine scaled linearly to [0, 1] over all label pairs.
        epsilon: Number added to the diagonal before the square root, >= 0.
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
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_second_moment(step).round(decimals=4)
        tensor(0.9904)
    """
    check_prediction_covariance_settings(epsilon, min_images)
    batch = prediction_covariance_batch(step, similarity)
    confidence = batch.negative_weights * (-batch.scores).sigmoid()
    moment = prediction_covariance_to_correlation(
        confidence.T @ confidence / batch.n_images, epsilon
    )
    shared_images = batch.negative_weights.T @ batch.negative_weights
    return prediction_covariance_difference(moment, batch.similarity, shared_images, min_images)
