"""Convert the rows of an ARFF file, dense or sparse, to vectors, targets and image paths."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.labels.resolution.arff_header import ArffAttribute, NumberedLines
from surelabel.data.labels.resolution.arff_values import (
    parse_arff_number,
    split_arff_values,
    split_sparse_arff_row,
)
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.mapped_arrays import mapped_zeros

MAX_NUMBERS = 2**31  # of the vectors; a small file with sparse rows can describe large vectors
LABEL_VALUES = frozenset({"0", "1"})

_DECIMAL = re.compile(r"[0-9eE+\-.,]*")  # excludes nan, inf, 1_000 and digits of other scripts

Cells = Sequence[str | None] | dict[int, str | None]  # values by index of the attribute
_StatedNumbers = tuple[slice | list[int], npt.NDArray[np.float32]]  # indices in a vector, numbers


@dataclass(frozen=True)
class ArffColumns:
    """Use of the attributes of an ARFF file.

    Attributes:
        attributes: All attributes, in the order of the file.
        features: Indices of the attributes that are features.
        labels: Indices of the attributes that are labels.
        image: Index of the attribute that contains the image paths, or None.
    """

    attributes: Sequence[ArffAttribute]
    features: Sequence[int]
    labels: Sequence[int]
    image: int | None


@dataclass(frozen=True)
class ArffRows:
    """Rows of an ARFF file.

    Attributes:
        features: Vectors of n rows, ``(n, d)``.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        images: Image paths, length n; empty without an attribute of image paths.
        lines: Numbers of the lines of the rows, length n.
    """

    features: npt.NDArray[np.float32]
    targets: Array
    images: list[str]
    lines: list[int]


def read_arff_rows(path: Path, lines: NumberedLines, columns: ArffColumns) -> ArffRows:
    """Read the rows of an ARFF file after the declaration ``@data``.

    A sparse row (``{1 0.5, 7 1}``) states some values with the index of their attribute, counted
    from 0. An omitted number is 0, and an omitted nominal value is the first value of its list. If
    this value is 1 and all values of the list are 0 or 1, the row is refused.

    Args:
        path: Path of the file, for messages.
        lines: Lines after ``@data`` with their numbers.
        columns: Use of the attributes.

    Raises:
        DataError: If a row does not have one valid value for each attribute, if a feature is
            missing, or if the vectors have more than ``MAX_NUMBERS`` numbers.
    """
    parser = _RowParser(columns)
    vectors: list[_StatedNumbers] = []
    targets: list[list[float]] = []
    images: list[str] = []
    numbers: list[int] = []
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        place = f"{path}, line {number}"
        if (len(vectors) + 1) * parser.width > MAX_NUMBERS:
            raise DataError(
                f"{place}: the vectors of a file must have at most {MAX_NUMBERS:,} numbers; got "
                f"more, with {format_count(parser.width, 'number')} in a row. Divide the file."
            )
        cells = parser.parse_cells(place, text)
        vectors.append(parser.vector_of_cells(place, cells))
        targets.append([parser.target_of_cells(place, cells, i) for i in columns.labels])
        if columns.image is not None:
            images.append(parser.image_of_cells(place, cells, columns.image))
        numbers.append(number)
    features = mapped_zeros((len(vectors), parser.width), np.float32)
    for row, (indices, values) in zip(features, vectors, strict=True):
        row[indices] = values
    target_array = np.array(targets, np.float64).reshape(len(targets), len(columns.labels))
    return ArffRows(features, target_array, images, numbers)


class _RowParser:
    """Parser of the rows of one ARFF file."""

    def __init__(self, columns: ArffColumns) -> None:
        self.attributes = columns.attributes
        self.features = columns.features
        self.starts: dict[int, int] = {}  # first index in the vector by index of the attribute
        self.width = 0
        for i in columns.features:
            self.starts[i] = self.width
            self.width += _vector_width(columns.attributes[i])
        used = sorted({*columns.features, *columns.labels})
        self.codes = {
            i: {value: code for code, value in enumerate(self.attributes[i].values)} for i in used
        }
        self.never_omitted = [  # the first value is 1, but an omitted value usually means 0
            i
            for i in used
            if _is_binary(self.attributes[i]) and self.attributes[i].values[0] == "1"
        ]
        self.is_numeric = all(self.attributes[i].type == "numeric" for i in columns.features)
        self.one_hot = [i for i in columns.features if _vector_width(self.attributes[i]) > 1]

    def parse_cells(self, place: str, text: str) -> Cells:
        """Return the values of a dense row as a list, or of a sparse row as a dictionary."""
        try:
            if text.startswith("{"):
                stated = split_sparse_arff_row(text, len(self.attributes))
                self._check_omitted_values(stated)
                return stated
            cells = split_arff_values(text)
            if len(cells) != len(self.attributes):
                raise ValueError(
                    f"expected {format_count(len(self.attributes), 'value')}, one for each "
                    f"attribute; got {len(cells)}"
                )
        except ValueError as error:
            raise DataError(f"{place}: {error}. Correct the row.") from error
        return cells

    def _check_omitted_values(self, cells: dict[int, str | None]) -> None:
        if omitted := [i for i in self.never_omitted if i not in cells]:
            name = self.attributes[omitted[0]].name
            raise ValueError(
                f"a sparse row omits {quote_of_file(name)}, whose first value is 1, so that ARFF "
                f"reads the omitted value as 1; declare the attribute as {{0,1}}, or write {{"
                f"{omitted[0]} 0}}"
            )

    def vector_of_cells(self, place: str, cells: Cells) -> _StatedNumbers:
        """Return the numbers of a row and their indices in the vector; other numbers are 0."""
        indices: slice | list[int] = slice(None)
        if isinstance(cells, dict):
            default = {i: self.attributes[i].values[0] for i in self.one_hot if i not in cells}
            stated = {i: text for i, text in cells.items() if i in self.starts} | default
            pairs = [self._number_of_cell(place, i, text) for i, text in stated.items()]
            indices, numbers = [index for index, _ in pairs], [number for _, number in pairs]
        elif self.is_numeric and (found := self._decimal_numbers(cells)) is not None:
            numbers = found
        else:
            pairs = [self._number_of_cell(place, i, cells[i]) for i in self.features]
            indices, numbers = [index for index, _ in pairs], [number for _, number in pairs]
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float64).astype(np.float32)
        if not np.isfinite(vector).all():
            row = int(np.flatnonzero(~np.isfinite(vector))[0])
            raise DataError(
                f"{place}: a feature must be between -3.4e38 and 3.4e38, the range of "
                f"float32; got {numbers[row]}. Correct the row."
            )
        return indices, vector

    def _decimal_numbers(self, cells: Sequence[str | None]) -> list[float] | None:
        """Return the numbers of all features, or None if one is no number in decimal notation."""
        texts = [text for i in self.features if (text := cells[i]) is not None]
        if len(texts) < len(self.features) or not _DECIMAL.fullmatch(",".join(texts)):
            return None
        try:
            return [*map(float, texts)]
        except ValueError:
            return None

    def _number_of_cell(self, place: str, i: int, text: str | None) -> tuple[int, float]:
        """Return the index in the vector and the number of a feature."""
        attribute = self.attributes[i]
        if text is None:
            raise DataError(
                f"{place}: the feature {quote_of_file(attribute.name)} must have a value; got ?. "
                "Remove the row, or replace the missing values, such as by the mean of the column."
            )
        if attribute.type == "numeric":
            return self.starts[i], _number_of_text(place, attribute, text)
        code = self._code_of_text(place, i, text)
        return (
            (self.starts[i], float(text)) if _is_binary(attribute) else (self.starts[i] + code, 1)
        )

    def _code_of_text(self, place: str, i: int, text: str) -> int:
        """Return the position of a nominal value in the list of its attribute."""
        code = self.codes[i].get(text)
        if code is None:
            attribute = self.attributes[i]
            values = ",".join(attribute.values[:8]) + (",…" if len(attribute.values) > 8 else "")
            raise DataError(
                f"{place}: the attribute {quote_of_file(attribute.name)} must be one of "
                f"{{{values}}} of line {attribute.line}; got {quote_of_file(text)}. Correct the "
                "value."
            )
        return code

    def target_of_cells(self, place: str, cells: Cells, i: int) -> float:
        """Return the target of a label; a missing value is unknown, NaN."""
        attribute = self.attributes[i]
        text = cells.get(i, "0") if isinstance(cells, dict) else cells[i]
        if text is None:
            return math.nan
        if attribute.type == "nominal":
            self._code_of_text(place, i, text)
            return float(text)
        target = _number_of_text(place, attribute, text)
        if not 0 <= target <= 1:
            raise DataError(
                f"{place}: the label {quote_of_file(attribute.name)} must be in [0, 1]; got "
                f"{quote_of_file(text)}. Correct the value."
            )
        return target

    def image_of_cells(self, place: str, cells: Cells, i: int) -> str:
        """Return the image path of a row."""
        image = cells.get(i) if isinstance(cells, dict) else cells[i]
        if not image:
            raise DataError(
                f"{place}: the attribute {quote_of_file(self.attributes[i].name)} must contain the "
                "path of an image; got no path. Write the path, or remove the row."
            )
        return image


def _vector_width(attribute: ArffAttribute) -> int:
    """Return the number of vector entries of a feature: 1, or the number of one-hot values."""
    return 1 if attribute.type == "numeric" or _is_binary(attribute) else len(attribute.values)


def _is_binary(attribute: ArffAttribute) -> bool:
    return attribute.type == "nominal" and LABEL_VALUES.issuperset(attribute.values)


def _number_of_text(place: str, attribute: ArffAttribute, text: str) -> float:
    try:
        return parse_arff_number(text)
    except ValueError as error:
        raise DataError(
            f"{place}: the attribute {quote_of_file(attribute.name)} must be a number in decimal "
            f"notation; got {error}. Correct the value."
        ) from error
