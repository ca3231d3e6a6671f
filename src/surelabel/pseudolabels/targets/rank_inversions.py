"""Count rank inversions, pairs in which a negative has a higher score than a positive."""

import torch
from torch import Tensor

from surelabel.errors import InputError
from surelabel.pseudolabels.targets.input_validation import validate_pseudolabel_image_scores
from surelabel.shapes import check_shapes


def rank_inversions_within_images(scores: Tensor, targets: Tensor) -> Tensor:
    """Count for each image the label pairs in which a negative has a higher score than a positive.

        Σ over positive j, negative k of [z_k > z_j]

    z_j is the score of label j, and [z_k > z_j] is 1 if the inequality is true and 0 otherwise.

    Args:
        scores: Scores, ``(n, c)``. Only the order of the scores is used.
        targets: Targets, 1 for positives and 0 for negatives, ``(n, c)``.

    Returns:
        Number of inversions per image, ``(n,)``. Pairs of equal scores are not counted.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a target is neither 0 nor 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, table 6.

    Differs:
        The paper does not state whether the pairs are two labels of an image or two images of a
        label. :func:`rank_inversions_within_labels` counts pairs of images.

    Example:
        >>> scores = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
        >>> rank_inversions_within_images(scores, torch.tensor([[1, 0, 0], [0, 0, 1]]))
        tensor([0, 2])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    z = validate_pseudolabel_image_scores(scores)
    is_positive = targets == 1
    if not (is_positive | (targets == 0)).all():
        raise InputError(
            "targets must be 0 or 1 to count inversions; got other values. Round the targets first."
        )
    negatives = z.masked_fill(is_positive, -torch.inf).sort(dim=1).values
    n_above = z.shape[1] - torch.searchsorted(negatives, z.contiguous(), right=True)
    return n_above.masked_fill(~is_positive, 0).sum(dim=1)


def rank_inversions_within_labels(scores: Tensor, targets: Tensor) -> Tensor:
    """Count for each label the image pairs in which a negative has a higher score than a positive.

        Σ over positive images i, negative images k of [z_k > z_i]

    z_i is the score of image i, and [z_k > z_i] is 1 if the inequality is true and 0 otherwise.

    Args:
        scores: Scores, ``(n, c)``. Only the order of the scores is used.
        targets: Targets, 1 for positives and 0 for negatives, ``(n, c)``.

    Returns:
        Number of inversions per label, ``(c,)``. Pairs of equal scores are not counted.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a target is neither 0 nor 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, table 6.

    Example:
        >>> scores = torch.tensor([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
        >>> rank_inversions_within_labels(scores, torch.tensor([[1, 1], [0, 0], [0, 0]]))
        tensor([0, 2])
    """
    check_shapes(scores=(scores, "n c"), targets=(targets, "n c"))
    return rank_inversions_within_images(validate_pseudolabel_image_scores(scores).T, targets.T)
