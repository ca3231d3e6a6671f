"""Parse the labels of each row of one column, such as ``dog, cat``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.arrays import Array, ColumnIndices
from surelabel.data.labels.resolution.label_cells import (
    check_label_texts,
    labels_of_cell,
    separators_of_cell,
)
from surelabel.data.labels.resolution.table_options import (
    SEPARATORS,
    Separator,
    describe_table_option,
)
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file


@dataclass(frozen=True)
class LabelLists:
    """Labels of the rows of one column.

    Attributes:
        codes: Index in ``lists`` of the labels of each row, ``(n,)``.
        lists: Labels of each distinct list.
        separator: Separator that was found or given. If None, each cell is a list or one label.
    """

    codes: ColumnIndices
    lists: Sequence[Sequence[str]]
    separator: Separator | None

    @property
    def labels(self) -> set[str]:
        """Return all labels of the column."""
        return set(chain.from_iterable(self.lists))

    def targets(self, rows: ColumnIndices, columns: Sequence[str]) -> Array:
        """Return targets with 1 for each label of a row, and 0 for other labels.

        Args:
            rows: Row of the targets for each row of the table, ``(n,)``.
            columns: Labels of the columns of the targets.
        """
        column_of = {label: column for column, label in enumerate(columns)}
        flat = [column_of[label] for label in chain.from_iterable(self.lists)]
        lengths = np.array([len(labels) for labels in self.lists], np.intp)
        starts = (np.cumsum(lengths) - lengths)[self.codes]
        counts = lengths[self.codes]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        targets = np.zeros((int(rows.max(initial=-1)) + 1, len(columns)))
        indices = np.repeat(starts, counts) + offsets
        targets[np.repeat(rows, counts), np.array(flat, np.intp)[indices]] = 1.0
        return targets


def is_list_type(kind: pa.DataType) -> bool:
    """Return True if the cells of a column are lists."""
    is_variable = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_variable or pa.types.is_fixed_size_list(kind))


def read_label_lists(
    source: str,
    cells: pa.ChunkedArray,
    separator: Separator | None,
    place_of_row: Callable[[int], str],
) -> LabelLists:
    """Return the labels of each row of one column.

    Args:
        source: Name of the table in messages.
        cells: Cells of the column: texts, lists of texts, numbers or nulls, length n.
        separator: Separator of labels in a text. If None, the only one of ``,``, ``;`` and ``|`` in
            the column, outside quoted labels, is used.
        place_of_row: Function that returns the place of a row in messages.

    Raises:
        DataError: If a label is invalid, or if several separators occur and none is given.
    """
    if is_list_type(cells.type):
        rows = [tuple(cell or ()) for cell in cells.to_pylist()]
        code_of = {row: code for code, row in enumerate(dict.fromkeys(rows))}
        codes = np.array([code_of[row] for row in rows], np.intp)
        distinct: list[str | tuple[str, ...]] = list(code_of)
    else:
        codes, texts = _encode_texts(cells)
        distinct = list(texts)
        separator = separator or _only_separator(source, texts, codes, place_of_row)
    lists = []
    for code, cell in enumerate(distinct):
        try:
            if isinstance(cell, str):
                lists.append(labels_of_cell(cell, separator))
            else:
                lists.append(check_label_texts(cell))
        except ValueError as error:
            row = int(np.flatnonzero(codes == code)[0])
            raise DataError(
                f"{source}, {place_of_row(row)}: {error}. Correct this cell."
            ) from error
    return LabelLists(codes, lists, separator)


def _encode_texts(cells: pa.ChunkedArray) -> tuple[ColumnIndices, list[str]]:
    """Return the code of the text of each row, and the distinct texts; a null is an empty text."""
    plain = cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells
    encoded = pc.dictionary_encode(plain.cast(pa.string())).combine_chunks()
    texts = [] if not len(cells) else encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(texts)).to_numpy().astype(np.intp)
    return codes, [*texts, ""] if len(codes) and codes.max() == len(texts) else texts


def _only_separator(
    source: str,
    texts: Sequence[str],
    codes: ColumnIndices,
    place_of_row: Callable[[int], str],
) -> Separator | None:
    first_code: dict[Separator, int] = {}
    for code, text in enumerate(texts):
        for separator in separators_of_cell(text):
            first_code.setdefault(separator, code)
    if len(first_code) < 2:
        return next(iter(first_code), None)
    examples = "; ".join(
        f"{SEPARATORS[separator]!r} on {place_of_row(int(np.flatnonzero(codes == code)[0]))}"
        f" ({quote_of_file(texts[code])})"
        for separator, code in first_code.items()
    )
    choices = " or ".join(describe_table_option("separator", name) for name in first_code)
    raise DataError(
        f"{source}: all labels of a column must be separated by the same character; got "
        f"{examples}. Add {choices}. Other separators are then part of the labels."
    )
