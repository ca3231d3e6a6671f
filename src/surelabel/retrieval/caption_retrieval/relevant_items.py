"""List the relevant items of each query, for retrieval between images and captions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.errors import InputError
from surelabel.records.relevance import Relevance
from surelabel.shapes import check_shapes

NOT_RANKED = -1  # column of a relevant item that is not in the collection


@dataclass(frozen=True)
class RelevantItems:
    """Relevant items of each query, with their grades.

    The items of query ``i`` are ``items[offsets[i] : offsets[i + 1]]``. A query may have no
    relevant item.

    Attributes:
        offsets: Position of the first item of each query, non-decreasing from 0 to k, ``(q + 1,)``.
        items: Column of each relevant item in the score matrix, or ``NOT_RANKED``, ``(k,)``.
        grades: Relevance of each item in (0, 1], ``(k,)``.
        is_own: True if the item was annotated for the query itself: a caption that was written for
            the image, or the image that the caption was written for, ``(k,)``.
    """

    offsets: ColumnIndices
    items: ColumnIndices
    grades: Array
    is_own: Flags

    def __len__(self) -> int:
        """Return the number of queries, with and without relevant items."""
        return len(self.offsets) - 1


def relevant_items_of_lists(
    lists: Sequence[Sequence[int] | npt.NDArray[np.integer]],
) -> RelevantItems:
    """Return relevant items that are listed for each query, with grade 1 and ``is_own`` True.

    Args:
        lists: Columns of the relevant items of each query, length q. The order of the columns has
            no effect, and a list may be empty. ``NOT_RANKED`` (-1) is an item that is relevant but
            not in the collection, so no model can find it. The annotations of ECCV Caption have two
            such captions.

    Raises:
        InputError: If a list contains a column twice, or a column below -1.

    Example:
        >>> relevant_items_of_lists([[4, 2], [], [0]]).offsets
        array([0, 2, 2, 3])
    """
    lengths = [len(columns) for columns in lists]
    items = np.concatenate([np.zeros(0, np.intp), *(np.asarray(c, np.intp) for c in lists)])
    queries = np.repeat(np.arange(len(lists)), lengths)
    pairs = np.stack([queries, items], axis=1)[items != NOT_RANKED]
    if len(np.unique(pairs, axis=0)) < len(pairs) or (items < NOT_RANKED).any():
        raise InputError(
            "Relevant items of a query must be distinct columns >= 0, or -1 (not ranked); got a "
            "repeated column, or a column below -1. Remove the invalid columns."
        )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    return RelevantItems(offsets, items, np.ones(len(items)), np.ones(len(items), bool))


def relevant_captions_of_images(
    image_rows: npt.ArrayLike, n_images: int, relevance: Relevance | None = None
) -> RelevantItems:
    """Return the relevant captions of each image: its own captions, and captions with a grade.

    Args:
        image_rows: Row of the image that each caption was written for, ``(s,)``.
        n_images: Number of images, n.
        relevance: Graded relevance of further pairs. If None, only own captions are relevant.

    Returns:
        Relevant captions of the n images. The grade of an own caption is 1, even if ``relevance``
        contains another grade.

    Raises:
        InputError: If a row is not the row of an image or caption.
    """
    images, captions, grades, is_own = _own_and_graded_relevant_items(
        image_rows, n_images, relevance
    )
    return _group_relevant_items(images, captions, grades, is_own, n_images)


def relevant_images_of_captions(
    image_rows: npt.ArrayLike, n_images: int, relevance: Relevance | None = None
) -> RelevantItems:
    """Return the relevant images of each caption: its own image, and images with a grade.

    Args:
        image_rows: Row of the image that each caption was written for, ``(s,)``.
        n_images: Number of images, n.
        relevance: Graded relevance of further pairs. If None, only the own image is relevant.

    Returns:
        Relevant images of the s captions. The grade of the own image is 1, even if ``relevance``
        contains another grade.

    Raises:
        InputError: If a row is not the row of an image or caption.
    """
    images, captions, grades, is_own = _own_and_graded_relevant_items(
        image_rows, n_images, relevance
    )
    return _group_relevant_items(captions, images, grades, is_own, len(np.asarray(image_rows)))


def _own_and_graded_relevant_items(
    image_rows: npt.ArrayLike, n_images: int, relevance: Relevance | None
) -> tuple[ColumnIndices, ColumnIndices, Array, Flags]:
    """Return image row, caption row, grade and ``is_own`` of each relevant pair, once per pair."""
    own_images = np.asarray(image_rows, dtype=np.intp)
    check_shapes(image_rows=(own_images, "s"))
    own_captions = np.arange(len(own_images))
    if relevance is None:
        images, captions, grades = own_images, own_captions, np.ones(len(own_images))
    else:
        images = np.concatenate([own_images, np.asarray(relevance.image_rows, np.intp)])
        captions = np.concatenate([own_captions, np.asarray(relevance.caption_rows, np.intp)])
        grades = np.concatenate([np.ones(len(own_images)), np.asarray(relevance.grades, float)])
    for name, rows, count in (("image", images, n_images), ("caption", captions, len(own_images))):
        if len(rows) and (rows.min() < 0 or rows.max() >= count):
            raise InputError(
                f"Relevant pairs must have {name} rows from 0 to {count - 1}; got rows from "
                f"{rows.min()} to {rows.max()}. Check that captions, relevance and scores belong "
                "to the same images."
            )
    is_own = np.arange(len(images)) < len(own_images)
    _, first = np.unique(images * len(own_images) + captions, return_index=True)  # own pairs first
    return images[first], captions[first], grades[first], is_own[first]


def _group_relevant_items(
    queries: ColumnIndices, items: ColumnIndices, grades: Array, is_own: Flags, n_queries: int
) -> RelevantItems:
    """Sort relevant pairs by query, then by item."""
    order = np.lexsort((items, queries))
    counts = np.bincount(queries, minlength=n_queries)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
    return RelevantItems(offsets, items[order], grades[order], is_own[order])
