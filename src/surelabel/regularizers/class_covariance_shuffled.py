"""Regularize class-wise covariances with text similarities of permuted labels, as a control."""

from dataclasses import replace

import torch
from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers.class_covariance import class_covariance
from surelabel.regularizers.covariance.prediction_covariance import TextSimilarity


def class_covariance_shuffled(
    step: TrainingStep,
    *,
    similarity: TextSimilarity = "cosine",
    epsilon: float = 1e-6,
    min_images: int = 4,
    seed: int = 0,
) -> Tensor:
    """Penalize differences between correlations of negatives and similarities of other labels.

        mean over pairs i != j of (R_ij - S_π(i)π(j))²

    R and S are the correlation and the text similarity of ``class_covariance``, and π is a random
    permutation of the labels, which is the same in each step. The similarities have the same
    distribution as those of ``class_covariance``, but belong to other label pairs. If the effect of
    both regularizers is equal, it does not depend on the meaning of the labels. The permutation
    does not depend on the order of the labels.

    Args:
        step: Training step with text vectors.
        similarity: Text similarity that the correlations are compared with. "cosine" is the cosine,
            "centered" is the cosine after the mean text vector is subtracted, and "minmax" is the
            cosine scaled linearly to [0, 1] over all label pairs.
        epsilon: Number added to each variance, >= 0. If the predictions of a label are nearly
            constant, ``epsilon`` keeps the correlations of the label close to 0.
        min_images: Smallest number of images where both labels of a pair are negative, >= 1. Label
            pairs with fewer images are left out.
        seed: Seed of the permutation.

    Returns:
        Scalar loss in [0, 4], ``()``, in float32 or a wider type. If no label pair is left, the
        loss is 0.

    Raises:
        InputError: If the step has no texts, or the shapes of its tensors do not match.
        ConfigError: If ``similarity`` is not "cosine", "centered" or "minmax", or another setting
            is out of range.

    Source:
        None; ours, a control for ``class_covariance``.

    Example:
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(scores, scores, targets, known, texts=torch.eye(2))
        >>> class_covariance_shuffled(step).round(decimals=4)
        tensor(0.3351)
    """
    texts = None if step.texts is None else step.texts[_text_permutation(step.texts, seed)]
    return class_covariance(
        replace(step, texts=texts),
        similarity=similarity,
        epsilon=epsilon,
        min_images=min_images,
    )


def _text_permutation(texts: Tensor, seed: int) -> Tensor:
    """Return the row of ``texts`` ``(c, d)`` that replaces each row, ``(c,)``.

    The rows are sorted by their projection on a random vector before they are permuted, so that the
    permutation of the labels does not depend on their order.
    """
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(texts.shape[1], generator=generator, dtype=torch.float64)
    order = (texts.detach().double().cpu() @ direction).argsort()
    rows = torch.empty_like(order)
    rows[order] = order[torch.randperm(len(order), generator=generator)]
    return rows.to(texts.device)
