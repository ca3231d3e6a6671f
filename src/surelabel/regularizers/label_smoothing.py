"""Smooth targets: each positive raises the targets of labels with similar texts."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.records import TrainingStep
from surelabel.shapes import check_shapes


def label_smoothing(step: TrainingStep, *, scale: float = 10.0) -> Tensor:
    """Compute the cross-entropy with targets that each positive distributes over similar labels.

        mean over images and labels of BCE(z, q),
        q_j = min(1, Σ_i y_i · r_ij),  r_ij = softmax over labels j != i of (scale · S_ij)

    In these formulas, y is the target, z is the log-odds, and S is the cosine of the texts of two
    labels. The cross-entropy is linear in the targets. With the loss ``binary`` and the weight λ,
    training therefore minimizes (1 + λ) · BCE(z, y'), with the smoothed targets

        y' = (1 - ε) · y + ε · q,  ε = λ / (1 + λ).

    Args:
        step: Training step with text vectors. If the step has no log-odds, z is the score.
        scale: Inverse temperature of the softmax over labels, >= 0. If 0, each positive target is
            distributed equally over the other labels.

    Returns:
        Scalar loss, >= 0, ``()``, in float32 or a wider type. If no target is known, the loss is 0.

    Raises:
        InputError: If the step has no texts, or the shapes of its tensors do not match.
        ConfigError: If ``scale`` is out of range.

    Source:
        Chen et al., Dynamic Correlation Learning and Regularization for Multi-Label Confidence
        Calibration, IEEE TIP 2024, arXiv:2407.06844: the smoothed targets. The paper uses ε = 0.05,
        which corresponds to the weight 0.0526.

    Differs:
        The similarity is the cosine of label texts, which is the same for all images. The paper
        compares features of image regions with stored features, and adds a contrastive loss. q is
        limited to 1, because an image with several positives may have larger sums. Unknown targets
        are left out.

    Example:
        >>> scores, targets = torch.zeros(2, 3), torch.eye(3)[:2]
        >>> step = TrainingStep(scores, scores, targets, targets >= 0, texts=torch.eye(3))
        >>> label_smoothing(step)
        tensor(0.6931)
    """
    if not 0 <= scale < math.inf:
        raise ConfigError(f"scale must be 0 or more; got {scale}. The default is 10.")
    if step.texts is None:
        raise InputError(
            "label_smoothing needs the text vectors of the labels, step.texts (c, d); got None. "
            "Use an encoder with a text tower, or another regularizer, such as mdca."
        )
    scores = step.scores if step.logits is None else step.logits
    check_shapes(
        z=(scores, "n c"),
        targets=(step.targets, "n c"),
        known=(step.known, "n c"),
        texts=(step.texts, "c d"),
    )
    z = torch.where(step.known, scores.to(torch.promote_types(scores.dtype, torch.float32)), 0.0)
    positives = torch.where(step.known, step.targets.to(z), 0.0)
    smoothed = (positives @ _neighbour_weights(step.texts.detach().to(z), scale)).clip(max=1)
    elements = F.binary_cross_entropy_with_logits(z, smoothed, reduction="none")
    return torch.where(step.known, elements, 0.0).sum() / step.known.sum().clip(min=1)


def _neighbour_weights(texts: Tensor, scale: float) -> Tensor:
    """Return the weights r of the other labels for each label, ``(c, c)``; the diagonal is 0."""
    unit_vectors = F.normalize(texts, dim=1)
    diagonal = torch.eye(len(texts), dtype=torch.bool, device=texts.device)
    similarity = (scale * unit_vectors @ unit_vectors.T).masked_fill(
        diagonal, torch.finfo(texts.dtype).min
    )
    return similarity.softmax(dim=1).masked_fill(diagonal, 0.0)
