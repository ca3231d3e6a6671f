"""Grow a random sample from round to round, by permanent random numbers."""

from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.errors import InputError
from surelabel.records import RowSelection

MIN_SHARE = 0.9  # smallest share of the earlier rows that remain; some may have been removed
TOLERANCE = 1e-6  # relative tolerance of probabilities that a spreadsheet program rounded


@dataclass(frozen=True)
class RandomSample:
    """Random sample of n rows: the rows with the smallest permanent random numbers.

    Attributes:
        is_sampled: Mask of the rows of the sample, ``(n,)``.
        probability: Inclusion probability of each row: (size of the sample) / n, in [0, 1].
    """

    is_sampled: Flags
    probability: float


def grow_random_sample(
    numbers: Array,
    selection: RowSelection,
    needs_labels: Flags,
    *,
    n_more: int,
    max_new: int,
) -> RandomSample:
    """Return a random sample that extends the earlier random sample.

    The size of the sample does not depend on the rows that a strategy chose. If a strategy chose a
    row of the new sample before, the row becomes a random row. Rows that were added since the
    earlier sample are included if their permanent random number is below that of an earlier random
    row.

    If the earlier random rows were not chosen by these numbers, the earlier rows are kept, and the
    other rows follow in the order of their numbers. In this case, no rows may be added.

    Args:
        numbers: Permanent random numbers of n rows, ``(n,)``.
        selection: How the rows were chosen before.
        needs_labels: Mask of the rows that would have to be annotated, ``(n,)``.
        n_more: Number of rows by which the sample grows, >= 0. If there are fewer rows, all rows
            are sampled.
        max_new: Maximum number of sampled rows that would have to be annotated, >= 0. The sample is
            smaller if this limit requires it, which can only happen if rows were added.

    Raises:
        InputError: If the earlier random rows have different inclusion probabilities, were chosen
            among more rows, or cannot be extended to added rows.

    Source:
        Sequential simple random sampling with permanent random numbers: Ohlsson, Coordination of
        samples using permanent random numbers, in Business Survey Methods, 1995.

    Differs:
        The size of the sample is the number of rows up to the last earlier random row, plus
        ``n_more``, and is limited by ``max_new``.

    Example:
        >>> numbers, unknown = np.array([0.3, 0.1, 0.8, 0.5]), np.full(4, np.nan)
        >>> nothing = RowSelection([""] * 4, unknown)
        >>> sample = grow_random_sample(numbers, nothing, np.ones(4, bool), n_more=2, max_new=4)
        >>> sample.is_sampled.tolist(), sample.probability
        ([True, True, False, False], 0.5)
    """
    is_random = selection.is_random
    n_added = _number_of_added_rows(selection, len(numbers))
    size = int((numbers <= numbers[is_random].max()).sum()) if is_random.any() else 0
    order = np.argsort(numbers, kind="stable")
    if size > is_random.sum() + n_added:  # the random rows were chosen by other numbers
        if n_added:
            raise InputError(
                f"Rows can be added only to random rows of the same seed; got {n_added:,} added "
                "rows and random rows of another seed or program. Give the --seed of the first "
                "round, or the earlier --pool."
            )
        size = int(is_random.sum())
        order = np.lexsort((numbers, ~is_random))
    n_new = np.cumsum(needs_labels[order])
    size = min(size + n_more, len(numbers), int(np.searchsorted(n_new, max_new, side="right")))
    is_sampled = np.zeros(len(numbers), dtype=bool)
    is_sampled[order[:size]] = True
    return RandomSample(is_sampled, size / len(numbers))


def _number_of_added_rows(selection: RowSelection, n_rows: int) -> int:
    """Return how many rows were added since the earlier random rows were chosen.

    Raises:
        InputError: If the earlier random rows were chosen among more rows, or have different
            probabilities.
    """
    probability = selection.inclusion_probability[selection.is_random]
    if not len(probability):
        return 0
    if probability.min() < probability.max() * (1 - TOLERANCE):
        raise InputError(
            "The random rows of the dataset must have the same inclusion_probability; got values "
            f"from {probability.min():g} to {probability.max():g}. Give the last table that "
            "label-next wrote."
        )
    n_before = round(len(probability) / float(probability.max()))
    if n_rows < MIN_SHARE * n_before:
        raise InputError(
            f"The random rows of the dataset were chosen among {n_before:,} rows; got only "
            f"{n_rows:,} rows now. Give a --pool that contains all rows of the earlier --pool."
        )
    return max(n_rows - n_before, 0)
