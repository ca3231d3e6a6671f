"""Read texts, structures and matrices of 0 and 1 in MATLAB files, which are untrusted."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.data.protocols.definition.matlab_elements import (
    MAX_BYTES,
    MatlabCells,
    MatlabValue,
    parse_matlab_variables,
)
from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file, quote_of_file

_RESTORE = "Restore the official file."


def read_matlab_file(file: Path, names: Sequence[str]) -> dict[str, MatlabValue]:
    """Return variables of a MATLAB file of version 5 to 7.2.

    Args:
        file: Path of the file. Files of version 7.3, which are HDF5, are not read.
        names: Names of the variables.

    Raises:
        DataError: If the file cannot be read, or if a variable is missing.
    """
    with open_regular_file(file) as stream:
        content = stream.read(MAX_BYTES)
    try:
        variables = dict(parse_matlab_variables(content))
    except ValueError as error:
        raise DataError(
            f"{file} must be a MATLAB file of version 5 to 7.2; it cannot be read: {error}. "
            f"{_RESTORE}"
        ) from error
    for name in names:
        if name not in variables:
            raise DataError(f"{file} must contain the variable {name}; it is missing. {_RESTORE}")
    return {name: variables[name] for name in names}


def cells_of(place: str, value: MatlabValue) -> list[MatlabValue]:
    """Return the values of a cell array with at least one cell.

    Args:
        place: Place of the cell array in messages.
        value: Value of a variable, a field or a cell.

    Raises:
        DataError: If the value is no cell array, or if it is empty.
    """
    if not isinstance(value, MatlabCells) or value.n_fields or not value.values:
        raise DataError(f"{place} must be a cell array with at least one cell. {_RESTORE}")
    return value.values


def texts_of_cells(place: str, value: MatlabValue) -> list[str]:
    """Return the texts of a cell array, whose cells can contain a cell with the text.

    Args:
        place: Place of the cell array in messages.
        value: Value of a variable or a field.

    Raises:
        DataError: If the value is no cell array, or if a cell contains no text.
    """
    texts = []
    for number, cell in enumerate(cells_of(place, value), start=1):
        text = cell
        while isinstance(text, MatlabCells) and not text.n_fields and len(text.values) == 1:
            text = text.values[0]
        if not isinstance(text, str) or not text.strip():
            got = quote_of_file(text) if isinstance(text, str) else "another value"
            raise DataError(f"{place}, cell {number}: expected a text; got {got}. {_RESTORE}")
        texts.append(text.strip())
    return texts


def structure_fields(place: str, value: MatlabValue, n_fields: int) -> list[MatlabValue]:
    """Return the fields of one structure by position.

    Args:
        place: Place of the structure in messages.
        value: Value of a variable or a cell.
        n_fields: Smallest number of fields.

    Raises:
        DataError: If the value is not one structure with at least ``n_fields`` fields.
    """
    fields = value.values if isinstance(value, MatlabCells) and value.n_fields else []
    if (
        len(fields) < n_fields
        or not isinstance(value, MatlabCells)
        or len(fields) != value.n_fields
    ):
        raise DataError(
            f"{place} must be one structure with at least {n_fields} fields; got {len(fields)}. "
            f"{_RESTORE}"
        )
    return fields


def binary_targets(place: str, value: MatlabValue, n_images: int, n_labels: int) -> Array:
    """Return a matrix of 0 and 1 as targets, ``(n, c)``.

    Args:
        place: Place of the matrix in messages.
        value: Value of a variable or a field. Columns after ``n_labels`` are not read.
        n_images: Number of rows.
        n_labels: Number of columns that are read.

    Raises:
        DataError: If the shape differs, or if a value is neither 0 nor 1.
    """
    shape = value.shape if isinstance(value, np.ndarray) else ()
    if (
        not isinstance(value, np.ndarray)
        or len(shape) != 2
        or shape[0] != n_images
        or shape[1] < n_labels
    ):
        raise DataError(
            f"{place} must be a matrix of 0 and 1 with {n_images:,} rows, one for each image, and "
            f"at least {n_labels} columns; got the shape {shape}. {_RESTORE}"
        )
    targets = value[:, :n_labels].astype(np.float64)
    invalid = np.argwhere((targets != 0) & (targets != 1))
    if len(invalid):
        row, column = invalid[0].tolist()
        raise DataError(
            f"{place}, row {row + 1}, column {column + 1}: the target must be 0 or 1; got "
            f"{targets[row, column]:g}. {_RESTORE}"
        )
    return targets


def row_numbers(place: str, value: MatlabValue, n_rows: int) -> list[int]:
    """Return rows counted from 0, which MATLAB counts from 1.

    Args:
        place: Place of the numbers in messages.
        value: Value of a variable or a field.
        n_rows: Number of rows.

    Raises:
        DataError: If there is no number, or if a number is not a whole number from 1 to ``n_rows``.
    """
    if not isinstance(value, np.ndarray) or not value.size:
        raise DataError(f"{place}: expected the numbers of images; got another value. {_RESTORE}")
    numbers = value.ravel(order="F").astype(np.float64)
    is_valid = (numbers >= 1) & (numbers <= n_rows) & (numbers == np.floor(numbers))
    if not is_valid.all():
        raise DataError(
            f"{place}: the number of an image must be a whole number from 1 to {n_rows:,}; got "
            f"{numbers[~is_valid][0]:g}. {_RESTORE}"
        )
    return [int(number) - 1 for number in numbers]
