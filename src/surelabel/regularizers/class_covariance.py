"""Regularize the correlation of the predictions of negative labels (class-wise covariance)."""

from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.covariance.prediction_covariance import (
    TextSimilarity,
    check_prediction_covariance_settings,
    prediction_correlation,
    prediction_covariance_batch,
    prediction_covariance_difference,
)


def class_covariance(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
) -> Tensor:
    """Penalize differences between correlations of negatives and the similarities of their texts.

        m = 1 - y,  mu = Σ m · p / Σ m,  a = m · (p - mu),  C = aᵀ a / n
        R_ij = C_ij / (sqrt(C_ii + epsilon) · sqrt(C_jj + epsilon))
        mean over pairs i != j of (R_ij - S_ij)²

    In these formulas, y is the target, p is the predicted probability and n is the number of images
    with a known target. The sums are over the images, so mu contains the mean probability of each
    label over its negatives; m is 0 for unknown targets. C is the covariance of labels, R is the
    correlation and S is the text similarity. The probability p is the sigmoid of the log-odds, or
    of the scores if the loss has no strictly increasing link. The rank of C is less than n, so use
    large batches. For c labels, the time is O(n · c²) and the memory is O(c · (n + c)).

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
        Zhou et al., Rethinking BCE Loss for Multi-Label Image Recognition with Fine-Tuning,
        CVPR 2026. The paper restricts the covariance to label pairs that are both negative,
        normalizes the covariance to a correlation and uses the squared Frobenius distance to the
        similarity of zero-shot texts. Only the supplement of the paper was available. The
        supplement has no formula of the covariance before normalization. The formula of C is ours;
        C is positive semi-definite, so R is a correlation matrix.

    Differs:
        The regularizer is the mean over label pairs. The paper uses the sum, which is c · (c - 1)
        times as large and dominates a loss that is a mean. Unknown targets and the diagonal of R
        are left out.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_covariance(step).round(decimals=4)
        tensor(0.3351)
    """
    check_prediction_covariance_settings(epsilon, min_images)
    batch = prediction_covariance_batch(step, similarity)
    correlation = prediction_correlation(
        batch.scores.sigmoid(), batch.negative_weights, batch.n_images, epsilon
    )
    shared_images = batch.negative_weights.T @ batch.negative_weights
    return prediction_covariance_difference(
        correlation, batch.similarity, shared_images, min_images
    )
