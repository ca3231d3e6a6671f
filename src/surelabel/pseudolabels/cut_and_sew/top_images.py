"""Selection of the images that are used as overlays: the highest scores of each label."""

import torch
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.pseudolabels.targets.input_validation import check_count, validate_image_scores
from surelabel.shapes import check_shapes


def mask_top_images(scores: Tensor, *, count: int = 200) -> Tensor:
    """Return a mask of the images with the highest scores of each label.

    Args:
        scores: Scores of whole images or of fused views, ``(n, c)``; only their order counts.
        count: Number of images per label (k), >= 1; all images if there are fewer.

    Returns:
        True for the selected images of each label, ``(n, c)``; of equal scores the first image.
        :func:`overlay_candidates` converts the mask to row numbers.

    Raises:
        InputError: If ``scores`` have another shape, or a score is not finite.
        ConfigError: If ``count`` is not a whole number >= 1.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 10, with the authors' k = 200.

    Differs:
        The paper selects by the whole-image scores, its code by the fused and corrected scores;
        both are possible. On VOC2012 train with CLIP RN50x64, 89.4 % of the selected images are
        positive by the whole-image scores, and 91.6 % by the fused scores. A label with fewer than
        ``count`` positive images gets wrong ones: see :func:`mask_top_images_by_prevalence`.

    Example:
        >>> mask_top_images(torch.tensor([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]]), count=1)
        tensor([[ True, False],
                [False, False],
                [False,  True]])
    """
    check_count("count", count, minimum=1)
    return _image_ranks(validate_image_scores(scores)) < count


def mask_top_images_by_prevalence(
    scores: Tensor, prevalence: Tensor, *, share: float = 0.5
) -> Tensor:
    """Return a mask of the highest images of each label, in proportion to its prevalence.

        count of label j = max(1, round(share · n · prevalence_j))

    Args:
        scores: Scores of whole images or of fused views, ``(n, c)``; only their order counts.
        prevalence: Expected share of positive images of each label, in [0, 1], ``(c,)``, such as
            the mean probability.
        share: Share of the expected positive images that is selected, in (0, 1].

    Returns:
        True for the selected images of each label, ``(n, c)``; of equal scores the first image.

    Raises:
        InputError: If the shapes do not fit, a score is not finite, or ``prevalence`` is outside
            [0, 1].
        ConfigError: If ``share`` is outside (0, 1].

    Source:
        none; ours, in place of the fixed k of TailorCLIP, arXiv:2606.11626, eq. 10, which is a
        large share of a small dataset and a small share of a large one. On VOC2012 train with CLIP
        RN50x64, half of the expected images by whole-image scores: 96.6 % of the selected images
        are positive, and 75.5 % for the worst label (89.4 and 52.5 % with k = 200).

    Example:
        >>> scores = torch.tensor([[4.0, 1.0], [3.0, 2.0], [2.0, 3.0], [1.0, 4.0]])
        >>> mask_top_images_by_prevalence(scores, torch.tensor([1.0, 0.2])).sum(dim=0)
        tensor([2, 1])
    """
    sizes = check_shapes(scores=(scores, "n c"), prevalence=(prevalence, "c"))
    if not 0 < share <= 1:
        raise ConfigError(f"share must be in (0, 1]; got {share!r}.")
    if not ((prevalence >= 0) & (prevalence <= 1)).all():
        raise InputError("prevalence must be in [0, 1], a share of the images for each label.")
    count = (share * sizes["n"] * prevalence.double()).round().clamp(min=1)
    return _image_ranks(validate_image_scores(scores)) < count


def overlay_candidates(selected: Tensor) -> Tensor:
    """Return the row numbers of the images that are selected for any label, the patch set.

    Args:
        selected: True for the selected images of each label, ``(n, c)``.

    Returns:
        Unique row numbers in ascending order, ``(m,)``.

    Raises:
        InputError: If ``selected`` is not a boolean array ``(n, c)``.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 10.

    Example:
        >>> overlay_candidates(torch.tensor([[True, True], [False, False], [False, True]]))
        tensor([0, 2])
    """
    check_shapes(selected=(selected, "n c"))
    if selected.dtype != torch.bool:
        raise InputError(
            f"selected must be a boolean mask, as mask_top_images returns it; got {selected.dtype}."
        )
    return selected.any(dim=1).nonzero()[:, 0]


def _image_ranks(scores: Tensor) -> Tensor:
    """Return the rank of each image within each label, 0 for the highest score."""
    return scores.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
