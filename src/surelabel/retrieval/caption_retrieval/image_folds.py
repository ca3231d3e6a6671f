"""Compute the recall in folds of images, such as the 1K evaluation of COCO with five folds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import ColumnIndices
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.query_metrics import query_recall_at_k
from surelabel.retrieval.caption_retrieval.relevant_items import (
    relevant_captions_of_images,
    relevant_images_of_captions,
)
from surelabel.retrieval.caption_retrieval.relevant_ranks import compute_relevant_ranks
from surelabel.shapes import check_shapes

RECALL_CUTOFFS = (1, 5, 10)
IMAGES_PER_FOLD = 1000


@dataclass(frozen=True)
class FoldRecall:
    """Recall of own items, as the mean over folds.

    Attributes:
        image_to_caption: Mean recall of the captions of an image by k, in [0, 1].
        caption_to_image: Mean recall of the image of a caption by k, in [0, 1].
        n_folds: Number of folds.
    """

    image_to_caption: dict[int, float]
    caption_to_image: dict[int, float]
    n_folds: int

    @property
    def rsum(self) -> float:
        """Return the sum of the recalls of both directions in percent (RSUM)."""
        recalls = (*self.image_to_caption.values(), *self.caption_to_image.values())
        return 100 * sum(recalls)


def consecutive_image_folds(
    n_images: int, images_per_fold: int = IMAGES_PER_FOLD
) -> list[ColumnIndices]:
    """Return the rows of consecutive images in folds of equal size.

    Args:
        n_images: Number of images, a multiple of ``images_per_fold``.
        images_per_fold: Number of images in a fold, >= 1.

    Raises:
        InputError: If ``n_images`` is not a positive multiple of ``images_per_fold``, or if
            ``images_per_fold`` is below 1.

    Example:
        >>> [fold.tolist() for fold in consecutive_image_folds(4, images_per_fold=2)]
        [[0, 1], [2, 3]]
    """
    if images_per_fold < 1 or not n_images or n_images % images_per_fold:
        raise InputError(
            "The number of images must be a positive multiple of images_per_fold="
            f"{images_per_fold}; got {format_count(n_images, 'image')}. Choose another "
            "images_per_fold."
        )
    return np.split(np.arange(n_images), n_images // images_per_fold)


def recall_in_image_folds(
    scores: npt.NDArray[np.floating[Any]],
    image_rows: npt.ArrayLike,
    folds: list[ColumnIndices],
    *,
    cutoffs: tuple[int, ...] = RECALL_CUTOFFS,
) -> FoldRecall:
    """Compute the recall of own items within each fold, and the mean over folds.

    In each fold, the queries and the ranked items are the images of the fold and their captions.
    Queries without an own item, such as images without a caption, are left out.

    Args:
        scores: Finite scores of n images and s captions, ``(n, s)``.
        image_rows: Row of the image that each caption was written for, ``(s,)``.
        folds: Rows of the images of each fold.
        cutoffs: Values of k.

    Returns:
        Mean recall over folds in both directions.

    Raises:
        InputError: If the shapes differ, if a fold has no caption, if a score is not finite, or if
            a cutoff is below 1.

    Source:
        Karpathy and Fei-Fei, Deep Visual-Semantic Alignments, CVPR 2015: five folds of 1,000 test
        images of COCO.
    """
    image_rows = np.asarray(image_rows, dtype=np.intp)
    check_shapes(scores=(scores, "n s"), image_rows=(image_rows, "s"))
    recalls = np.array(
        [_recalls_of_image_fold(scores, image_rows, fold, cutoffs) for fold in folds]
    )  # (folds, 2, cutoffs)
    image_to_caption, caption_to_image = (
        dict(zip(cutoffs, means.tolist(), strict=True)) for means in recalls.mean(axis=0)
    )
    return FoldRecall(image_to_caption, caption_to_image, len(folds))


def _recalls_of_image_fold(
    scores: npt.NDArray[np.floating[Any]],
    image_rows: ColumnIndices,
    fold: ColumnIndices,
    cutoffs: tuple[int, ...],
) -> list[list[float]]:
    """Return the recall of each direction, images to captions first, at each cutoff."""
    row_in_fold = np.full(len(scores), -1)
    row_in_fold[fold] = np.arange(len(fold))
    captions = np.flatnonzero(row_in_fold[image_rows] >= 0)
    if not len(captions):
        raise InputError(
            "Each fold must contain an image with a caption; got a fold without captions. Use "
            "larger folds."
        )
    fold_scores, own = scores[np.ix_(fold, captions)], row_in_fold[image_rows[captions]]
    ranks_by_direction = (
        compute_relevant_ranks(fold_scores, relevant_captions_of_images(own, len(fold))),
        compute_relevant_ranks(fold_scores.T, relevant_images_of_captions(own, len(fold))),
    )
    return [
        [float(query_recall_at_k(ranks, k=k).mean()) for k in cutoffs]
        for ranks in ranks_by_direction
    ]
