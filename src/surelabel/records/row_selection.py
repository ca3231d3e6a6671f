"""Record how each row of a dataset was chosen for annotation: at random or by a strategy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.errors import InputError

RANDOM_ROW = "random"  # value of ``chosen_by`` for rows of the random sample


@dataclass(frozen=True, eq=False)
class RowSelection:
    """Record of how each row of a dataset was chosen for annotation.

    A row of the random sample was included with a known probability, which does not depend on its
    content. Other rows were chosen by a strategy or in an unknown way.

    Attributes:
        chosen_by: ``random`` or the key of a strategy for each row, length n. If it is unknown how
            a row was chosen, the text is empty.
        inclusion_probability: Probability in (0, 1] with which each row was included in the random
            sample, ``(n,)``. For rows that are not random, the value is NaN.
        sample_names: Labels of the columns of ``sample_targets``, length c.
        sample_targets: Targets that were annotated because the row is random, ``(n, c)``; NaN is
            unknown. Other targets of a random row can depend on predictions, for example if errors
            were corrected. If None, all targets of random rows were annotated for this reason.

    Raises:
        InputError: If the lengths or shapes differ, if the probability of a random row is not in
            (0, 1], or if the probability of another row is not NaN.

    Example:
        >>> selection = RowSelection(["random", "expected_gain", ""], [0.1, np.nan, np.nan])
        >>> selection.is_random.tolist()
        [True, False, False]
    """

    chosen_by: Sequence[str]
    inclusion_probability: Array
    sample_names: Sequence[str] = ()
    sample_targets: Array | None = None

    def __post_init__(self) -> None:
        probability = np.asarray(self.inclusion_probability, dtype=np.float64)
        chosen_by = list(self.chosen_by)
        if probability.shape != (len(chosen_by),):
            raise InputError(
                f"inclusion_probability must have one value per row, ({len(chosen_by)},); got "
                f"{probability.shape}. Give one value for each row."
            )
        object.__setattr__(self, "chosen_by", chosen_by)
        object.__setattr__(self, "inclusion_probability", probability)
        is_valid = np.where(
            self.is_random, (probability > 0) & (probability <= 1), np.isnan(probability)
        )
        if not is_valid.all():
            row = int(np.flatnonzero(~is_valid)[0])
            raise InputError(
                "inclusion_probability must be in (0, 1] for random rows, and NaN for other rows; "
                f"got {probability[row]} with chosen_by {chosen_by[row]!r} in row {row}, counted "
                "from 0. Correct this row."
            )
        shape = (len(chosen_by), len(self.sample_names))
        if self.sample_targets is not None and self.sample_targets.shape != shape:
            raise InputError(
                "sample_targets must have one row per row of the dataset and one column per label "
                f"of sample_names, {shape}; got {self.sample_targets.shape}. Correct the shape."
            )

    def __len__(self) -> int:
        return len(self.chosen_by)

    @property
    def is_random(self) -> Flags:
        """Return a Boolean mask of the rows of the random sample, ``(n,)``."""
        return np.array([key == RANDOM_ROW for key in self.chosen_by], dtype=bool)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "RowSelection":
        """Return the entries of the given row indices, in the order of the indices."""
        rows = np.asarray(rows, dtype=int)
        targets = self.sample_targets
        return RowSelection(
            [self.chosen_by[row] for row in rows],
            self.inclusion_probability[rows],
            self.sample_names,
            None if targets is None else targets[rows],
        )


def check_row_selection(selection: RowSelection | None, n_rows: int) -> None:
    """Check that a selection has one entry per row.

    Raises:
        InputError: If the number of entries differs from the number of rows.
    """
    if selection is not None and len(selection) != n_rows:
        raise InputError(
            f"row_selection must have one entry per row, {n_rows}; got {len(selection)}. Give one "
            "entry for each row."
        )
