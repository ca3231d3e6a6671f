"""Test thresholds in two fixed sequences with different starts."""

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags


def lowest_fixed_sequence_index(
    p_values: Array, image_counts: Array, starts: ColumnIndices, level: float, error: float
) -> int | None:
    """Return the index of the lowest valid threshold of two sequences of tests, or None.

    Each sequence continues with lower thresholds and ends at its first failed test. The errors of
    the tests are those that ``at_most_wrong`` describes.

    Args:
        p_values: P-value of each of g thresholds, ``(g,)``.
        image_counts: Number of images with a predicted label at each threshold, ``(g,)``.
        starts: Index of the first threshold of each sequence, the higher index first, ``(2,)``.
        level: Upper bound of the mean risk.
        error: Upper bound of the probability that a returned threshold violates the bound.

    Example:
        >>> p_values = np.array([0.9, 0.08, 0.04, 0.02])
        >>> counts = np.full(4, 100.0)
        >>> [lowest_fixed_sequence_index(p_values, counts, np.array([3, 1]), 0.1, e)
        ...     for e in (0.1, 0.07, 0.03)]
        [1, 3, None]
    """
    first, second = (int(start) for start in starts)
    n_first = count_valid_before_failure(p_values[first::-1] <= error / 2)
    has_few_images = (1 - level) ** image_counts > error / 2  # the lowest possible p-value
    has_whole_error = has_few_images | (n_first >= first - second)
    n_second = count_valid_before_failure(
        (p_values <= np.where(has_whole_error, error, error / 2))[second::-1]
    )
    if n_second:
        return second - n_second + 1
    return first - n_first + 1 if n_first else None


def count_valid_before_failure(is_valid: Flags) -> int:
    """Return the number of valid thresholds before the first threshold that is not valid."""
    return int(is_valid.size if is_valid.all() else is_valid.argmin())
