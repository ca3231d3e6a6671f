"""Parse the columns of a label table that state how each row was chosen for annotation."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from surelabel.data.labels.resolution.target_cells import MISSING_CELLS
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import RANDOM_ROW, RowSelection

CHOSEN_BY_COLUMN = "chosen_by"
PROBABILITY_COLUMN = "inclusion_probability"
SELECTION_COLUMNS = (CHOSEN_BY_COLUMN, PROBABILITY_COLUMN)

_KEY = re.compile(r"[A-Za-z][\w -]*")  # of a strategy; texts of targets are refused
_TARGETS = frozenset({"true", "false", "yes", "no"})


def find_selection_columns(source: str, header: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the columns ``chosen_by`` and ``inclusion_probability``, or ``()``.

    Args:
        source: Name of the table in messages.
        header: Names of the columns.

    Raises:
        DataError: If only one of the columns exists, or if one of the columns is repeated.
    """
    counts = {name: list(header).count(name) for name in SELECTION_COLUMNS}
    if not any(counts.values()):
        return ()
    if set(counts.values()) != {1}:
        present = ", ".join(f"{name} {count} times" for name, count in counts.items())
        raise DataError(
            f"{source} must contain both columns {' and '.join(SELECTION_COLUMNS)} once, or "
            f"neither of them; got {present}. These names are reserved: rename labels with these "
            "names."
        )
    return tuple(list(header).index(name) for name in SELECTION_COLUMNS)


def row_selection_of_cells(
    source: Path,
    images: Sequence[str],
    chosen_by: Sequence[object],
    probability: Sequence[object],
    place_of_row: Callable[[int], str],
) -> RowSelection:
    """Return how each distinct image of a table was chosen, in the order of their first rows.

    Args:
        source: Path or name of the table.
        images: Image path of each row, length n.
        chosen_by: Cells of the column ``chosen_by``, length n.
        probability: Cells of the column ``inclusion_probability``, length n.
        place_of_row: Function that returns the place of a row in messages, such as ``line 2``.

    Raises:
        DataError: If a cell is invalid, or if rows of an image contradict each other.
    """
    entries = dict[str, tuple[str, float]]()
    for row, image in enumerate(images):
        place = f"{source}, {place_of_row(row)}"
        entry = parse_row_selection(place, chosen_by[row], probability[row])
        earlier = entries.setdefault(image, entry)
        if not earlier[0]:
            entries[image] = entry
        elif entry[0] and entry != earlier and not math.isnan(entry[1] + earlier[1]):
            raise DataError(
                f"{place}: rows of the same image must have the same {PROBABILITY_COLUMN}; got "
                f"{entry[1]} and {earlier[1]} for {quote_of_file(image)}. Correct or remove one of "
                "these rows."
            )
        elif entry[0] == RANDOM_ROW:
            entries[image] = entry
    keys, probabilities = zip(*entries.values(), strict=True) if entries else ((), ())
    return RowSelection(keys, np.array(probabilities, dtype=float))


def parse_row_selection(place: str, chosen_by: object, probability: object) -> tuple[str, float]:
    """Return the key and the inclusion probability of a row; without them, an empty key and NaN.

    Args:
        place: Place of the row in messages, such as ``labels.csv, line 2``.
        chosen_by: Cell of the column ``chosen_by``.
        probability: Cell of the column ``inclusion_probability``.

    Raises:
        DataError: If a cell is invalid.
    """
    key = _text_of_row_selection_cell(chosen_by)
    key = RANDOM_ROW if key.casefold() == RANDOM_ROW else key
    is_key = not key or (_KEY.fullmatch(key) and key.casefold() not in _TARGETS)
    if not is_key:
        raise DataError(
            f"{place}: {CHOSEN_BY_COLUMN} must be {RANDOM_ROW}, the name of a strategy, or empty; "
            f"got {quote_of_file(key)}. Correct the cell, or rename the column if "
            f"{CHOSEN_BY_COLUMN} is a label."
        )
    text = _text_of_row_selection_cell(probability)
    if key != RANDOM_ROW:
        if text:
            raise DataError(
                f"{place}: {PROBABILITY_COLUMN} must be empty, because {CHOSEN_BY_COLUMN} is not "
                f"{RANDOM_ROW}; got {quote_of_file(text)}. Correct one of the cells."
            )
        return key, math.nan
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = math.nan
    if not 0 < number <= 1:  # True for NaN
        raise DataError(
            f"{place}: {PROBABILITY_COLUMN} of a {RANDOM_ROW} row must be in (0, 1]; got "
            f"{quote_of_file(text)}. Give the probability with which the row was sampled."
        )
    return key, number


def _text_of_row_selection_cell(cell: object) -> str:
    """Return the text of a cell without surrounding spaces; of a missing cell, an empty text."""
    text = "" if cell is None or cell != cell else str(cell).strip()
    return "" if text.casefold() in MISSING_CELLS else text
