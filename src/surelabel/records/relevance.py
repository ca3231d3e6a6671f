"""This module defines the graded relevance of captions for images as a sparse matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError

RowIndices = npt.NDArray[np.int64]
ROW_LIMIT = 2**31  # exclusive limit of rows, so that a position in the matrix fits into int64


@dataclass(frozen=True)
class Relevance:
    """Graded relevance of captions for images; all pairs that are not listed have grade 0.

    The pairs are sorted by image and caption on construction.

    Attributes:
        image_rows: Row of the image of each listed pair, ``(k,)``.
        caption_rows: Row of the caption of each listed pair, ``(k,)``.
        grades: Grade of each listed pair in (0, 1], ``(k,)``; 1 means that the caption describes
            the image completely.

    Raises:
        InputError: If the arrays differ in length, if a row is not an integer in [0, 2**31), if a
            grade is outside (0, 1], or if a pair is listed twice.

    Example:
        >>> relevance = Relevance([1, 0, 0], [2, 0, 2], [1.0, 1.0, 0.5])
        >>> relevance.image_rows.tolist(), relevance.caption_rows.tolist()
        ([0, 0, 1], [0, 2, 2])
    """

    image_rows: RowIndices
    caption_rows: RowIndices
    grades: Array

    def __post_init__(self) -> None:
        image_rows = as_row_indices("image_rows", self.image_rows)
        caption_rows = as_row_indices("caption_rows", self.caption_rows)
        grades = np.asarray(self.grades, dtype=np.float64)
        if not image_rows.shape == caption_rows.shape == grades.shape:
            raise InputError(
                "image_rows, caption_rows and grades must have one entry per pair; got shapes "
                f"{image_rows.shape}, {caption_rows.shape} and {grades.shape}."
            )
        is_grade = (grades > 0) & (grades <= 1)
        if not is_grade.all():
            raise InputError(
                f"Grades must be in (0, 1]; got {grades[~is_grade][0]}. Omit pairs with grade 0, "
                "and divide other grades by the maximum of the scale."
            )
        positions = image_rows * ROW_LIMIT + caption_rows
        if not (positions[1:] > positions[:-1]).all():
            order = np.argsort(positions)
            image_rows, caption_rows = image_rows[order], caption_rows[order]
            grades, positions = grades[order], positions[order]
        repeated = positions[1:] == positions[:-1]
        if repeated.any():
            first = int(np.argmax(repeated))
            raise InputError(
                f"Each pair must be listed only once; got image row {image_rows[first]} with "
                f"caption row {caption_rows[first]} more than once. Remove the repeated entries."
            )
        object.__setattr__(self, "image_rows", image_rows)
        object.__setattr__(self, "caption_rows", caption_rows)
        object.__setattr__(self, "grades", grades)

    def __len__(self) -> int:
        return len(self.grades)

    def take(
        self, image_rows: Sequence[int] | RowIndices, caption_rows: Sequence[int] | RowIndices
    ) -> "Relevance":
        """Return the relevance of the given captions for the given images.

        Args:
            image_rows: Rows of distinct images. The i-th image becomes row i of the result.
            caption_rows: Rows of distinct captions. The j-th caption becomes row j of the result.

        Raises:
            InputError: If a row is repeated, negative, or not an integer.
        """
        new_images = _new_rows("image_rows", image_rows, self.image_rows)
        new_captions = _new_rows("caption_rows", caption_rows, self.caption_rows)
        images, captions = new_images[self.image_rows], new_captions[self.caption_rows]
        is_taken = (images >= 0) & (captions >= 0)
        return Relevance(images[is_taken], captions[is_taken], self.grades[is_taken])


def as_row_indices(
    name: str, rows: Sequence[int] | RowIndices, n_rows: int = ROW_LIMIT
) -> RowIndices:
    """Return row indices as a one-dimensional array of type int64.

    Args:
        name: Name of the argument in error messages.
        rows: Row indices, length k.
        n_rows: Number of existing rows, which is the exclusive limit of the indices.

    Raises:
        InputError: If the indices are not one-dimensional integers, or if an index is negative or
            not below ``n_rows``.
    """
    indices = np.asarray(rows)
    if indices.size == 0:
        indices = indices.astype(np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be a one-dimensional list of integers; got shape {indices.shape} and "
            f"type {indices.dtype}."
        )
    outside = (indices < 0) | (indices >= n_rows)
    if outside.any():
        raise InputError(
            f"{name} must be at least 0 and below {n_rows}; got {indices[outside][0]}. "
            f"Entries out of range: {outside.sum()} of {len(indices)}."
        )
    return indices.astype(np.int64, copy=False)


def _new_rows(name: str, rows: Sequence[int] | RowIndices, listed_rows: RowIndices) -> RowIndices:
    """Return the new row of each old row, or -1 if the old row is not in ``rows``."""
    indices = as_row_indices(name, rows)
    n_rows = max(indices.max(initial=-1), listed_rows.max(initial=-1)) + 1
    new_rows = np.full(n_rows, -1)
    new_rows[indices] = np.arange(len(indices))
    if (new_rows[indices] != np.arange(len(indices))).any():
        raise InputError(f"{name} must be distinct; got a repeated row. Remove the repetitions.")
    return new_rows
