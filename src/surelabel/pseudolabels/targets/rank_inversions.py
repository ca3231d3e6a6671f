"""Rank inversions: pairs in which a negative has a higher score than a positive."""

import torch
from torch import Tensor

from surelabel.errors import InputError
from surelabel.pseudolabels.targets.input_validation import validate_image_scores
from surelabel.shapes import check_shapes


def inversions_within_images(scores: Tensor, targets: Tensor) -> Tensor:
    """Count for each image the pairs of a negative label above a positive label.

        Σ over positive j, negative k of [z_k > z_j]

    Args:
        scores: Scores; only their order counts, ``(n, c)``.
        targets: 1 for positives, 0 for negatives, ``(n, c)``.

    Returns:
        Number of inversions per image, ``(n,)``. Equal scores are not an inversion.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a target is neither 0 nor 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, table 6.

    Differs:
        The paper does not state whether its pairs are labels of an image or images of a label; the
        other case is :func:`inversions_within_labels`.

    Example:
        >>> scores = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
        >>> inversions_within_images(scores, torch.tensor([[1, 0, 0], [0, 0, 1]]))
        tensor([0, 2])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    z = validate_image_scores(scores)
    is_positive = targets == 1
    if not (is_positive | (targets == 0)).all():
        raise InputError(
            "targets must be 0 or 1 to count inversions; got other values. Round them first."
        )
    negatives = z.masked_fill(is_positive, -torch.inf).sort(dim=1).values
    n_above = z.shape[1] - torch.searchsorted(negatives, z.contiguous(), right=True)
    return n_above.masked_fill(~is_positive, 0).sum(dim=1)


def inversions_within_labels(scores: Tensor, targets: Tensor) -> Tensor:
    """Count for each label the pairs of a negative image above a positive image.

        Σ over positive images i, negative images k of [z_k > z_i]

    Args:
        scores: Scores; only their order counts, ``(n, c)``.
        targets: 1 for positives, 0 for negatives, ``(n, c)``.

    Returns:
        Number of inversions per label, ``(c,)``. Equal scores are not an inversion.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a target is neither 0 nor 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, table 6.

    Example:
        >>> scores = torch.tensor([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
        >>> inversions_within_labels(scores, torch.tensor([[1, 1], [0, 0], [0, 0]]))
        tensor([0, 2])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    return inversions_within_images(validate_image_scores(scores).T, targets.T)
