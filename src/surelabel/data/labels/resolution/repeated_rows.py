"""Merge the rows of a table that have the same image."""

from collections.abc import Callable, Sequence

import numpy as np

from surelabel.arrays import Array
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file


def merge_repeated_rows(
    source: str,
    images: Sequence[str],
    targets: Array,
    labels: Sequence[str],
    place_of_row: Callable[[int], str],
) -> tuple[Sequence[str], Array, int]:
    """Return each image once, with the targets of all its rows.

    If a target is unknown in one row, the target of another row of the image is used.

    Args:
        source: Name of the table in messages.
        images: Image path of each row, length n.
        targets: Targets, NaN = unknown, ``(n, c)``. First rows of repeated images are changed in
            place.
        labels: Labels of the columns, length c.
        place_of_row: Function that returns the place of a row in messages, such as ``line 2``.

    Returns:
        The distinct images in the order of their first rows, their targets, and the number of rows
        that were merged.

    Raises:
        DataError: If two rows of an image have different known targets of a label.
    """
    if len(set(images)) == len(images):
        return images, targets, 0
    row_of: dict[str, int] = {}
    repeated = []
    for row, image in enumerate(images):
        if row_of.setdefault(image, row) != row:
            repeated.append(row)
    for row in repeated:
        first = row_of[images[row]]
        is_known = ~np.isnan(targets[row])
        is_different = is_known & ~np.isnan(targets[first]) & (targets[first] != targets[row])
        if is_different.any():
            column = int(np.flatnonzero(is_different)[0])
            raise DataError(
                f"{source}: rows of the same image must have equal targets; "
                f"{quote_of_file(images[row])} has {targets[first, column]:g} for "
                f"{quote_of_file(labels[column])} on {place_of_row(first)}, but "
                f"{targets[row, column]:g} on {place_of_row(row)}. Correct or remove one of these "
                "rows."
            )
        targets[first, is_known] = targets[row, is_known]
    rows = list(row_of.values())
    return list(row_of), targets[rows], len(repeated)
