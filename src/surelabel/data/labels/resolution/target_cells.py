"""Convert cells of a label table to targets: 1, 0, -1, True, False, fractions, missing values."""

import math
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.arrays import Array, Flags
from surelabel.data.labels.resolution.table_options import TableOptions, describe_table_option
from surelabel.errors import DataError

MISSING_CELLS = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none"})  # case-folded

Locate = Callable[[int, int], str]  # place of a row and a column in messages

_MINUS_ONE = -1.0
_BOOLEANS = {"true": 1.0, "false": 0.0}
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_FEW_VALUES = 100  # distinct values of a column that are converted one by one


def target_of_cell(cell: object) -> float | None:
    """Return the target of a cell, or None if the cell is no target.

    Args:
        cell: Text of a cell, or a value of a DataFrame.

    Returns:
        A target in [0, 1]; -1, whose meaning is set by an option; or NaN if the cell is missing.

    Example:
        >>> [target_of_cell(cell) for cell in ("1", "0,5", "True", "-1", "NA", "yes", None)]
        [1.0, 0.5, 1.0, -1.0, nan, None, nan]
    """
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        text = cell.strip().casefold()
        if text in MISSING_CELLS:
            return math.nan
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if not _NUMBER.fullmatch(text):
            return None
        cell = text.replace(",", ".")
    try:
        number = float(cell)  # type: ignore[arg-type]  # a value without a number raises TypeError
    except (TypeError, ValueError):
        return None
    return number if math.isnan(number) or number == _MINUS_ONE or 0 <= number <= 1 else None


def targets_of_column(column: pa.ChunkedArray) -> tuple[Array, object, int]:
    """Return the targets of a column, ``(n,)``, its first invalid cell, and their number.

    Args:
        column: Texts, numbers, Booleans or nulls, dictionary-encoded or plain, length n.

    Returns:
        The targets with -1 and NaN as in :func:`target_of_cell`, and NaN for invalid cells; the
        first invalid cell; and the number of invalid cells.
    """
    parts, first, count = [], None, 0
    for chunk in column.chunks:
        if pa.types.is_floating(chunk.type):
            targets = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False)
            if are_targets(targets).all():
                parts.append(targets)
                continue
        encoded = chunk if pa.types.is_dictionary(chunk.type) else pc.dictionary_encode(chunk)
        values = _targets_of_values(encoded.dictionary)
        codes = encoded.indices.fill_null(len(values)).to_numpy()
        is_invalid = np.append(np.isinf(values), False)[codes]
        if is_invalid.any():
            row = int(np.flatnonzero(is_invalid)[0])
            first = encoded.dictionary[int(codes[row])].as_py() if first is None else first
            count += int(is_invalid.sum())
        targets = np.append(values, np.nan)[codes]
        targets[is_invalid] = np.nan
        parts.append(targets)
    return (np.concatenate(parts) if parts else np.zeros(0)), first, count


def _targets_of_values(values: pa.Array) -> Array:
    """Return the targets of distinct values; infinity for a value that is no target."""
    if len(values) > _FEW_VALUES:
        try:
            numbers = pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # text that is no plain number: converted one by one below
        else:
            return np.where(are_targets(numbers), numbers, np.inf)
    targets = [target_of_cell(value) for value in values.to_pylist()]
    return np.array([math.inf if target is None else target for target in targets], np.float64)


def are_targets(numbers: Array) -> Flags:
    """Return True for each number that is a target: in [0, 1], -1 or NaN.

    Args:
        numbers: Numbers of any shape.

    Example:
        >>> are_targets(np.array([0.5, -1.0, np.nan, 2.0])).tolist()
        [True, True, True, False]
    """
    is_target: Flags = (numbers == _MINUS_ONE) | ((numbers >= 0) & (numbers <= 1))
    return is_target | np.isnan(numbers)


def interpret_targets(source: str, targets: Array, options: TableOptions, locate: Locate) -> None:
    """Replace the targets -1 and 0 in place by the targets that the options state.

    Args:
        source: Name of the table in messages.
        targets: Targets with -1, ``(n, c)``, which are changed in place.
        options: Options of the table.
        locate: Function that returns the place of a row and a column, such as ``line 2: the target
            of 'dog'``.

    Raises:
        DataError: If there is a target -1 or an ambiguous target 0, and no option states its
            meaning.
    """
    is_minus_one = targets == _MINUS_ONE
    has_minus_one = bool(is_minus_one.any())
    if has_minus_one and options.minus_one is None:
        raise DataError(
            f"{source}, {locate(*_first_cell(is_minus_one))} is -1, which is negative in some "
            "tables and unknown in other tables. Add "
            f"{describe_table_option('minus_one', 'negative')} or "
            f"{describe_table_option('minus_one', 'unknown')}."
        )
    if has_minus_one and options.minus_one == "negative" and options.zero is None:
        is_zero = targets == 0
        if is_zero.any():
            raise DataError(
                f"{source}, {locate(*_first_cell(is_zero))} is 0, but -1 is negative in this "
                "table. In VOC 2007, 0 marks difficult objects, whose label is unknown. Add "
                f"{describe_table_option('zero', 'unknown')} or "
                f"{describe_table_option('zero', 'negative')}."
            )
    if options.zero == "unknown":
        targets[targets == 0] = np.nan
    if has_minus_one:
        targets[is_minus_one] = 0.0 if options.minus_one == "negative" else np.nan


def _first_cell(mask: Flags) -> tuple[int, int]:
    row = int(np.flatnonzero(mask.any(axis=1))[0])
    return row, int(np.flatnonzero(mask[row])[0])
