"""Combine rows of Open Images into the known targets of pairs of an image and a label."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from surelabel.data.labels.resolution.openimages_rows import (
    MACHINE,
    NEGATIVE,
    POSITIVE,
    OpenImagesRows,
    line_of_openimages_row,
)
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

CellKeys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OpenImagesCells:
    """Known targets of a table with one row per image and one column per label.

    The key of a cell is ``row * len(labels) + column``. Keys are sorted and unique.

    Attributes:
        images: Image ids of the rows.
        labels: Labels of the columns, such as machine identifiers (MIDs).
        positive: Keys of cells that are positive by a verified label or a box.
        negative: Keys of cells that are negative by a verified label.
        machine: Keys of cells that are positive only by a machine label.
    """

    images: list[str]
    labels: list[str]
    positive: CellKeys
    negative: CellKeys
    machine: CellKeys

    @property
    def known_labels(self) -> list[str]:
        """Return the labels with at least one known target."""
        is_known = np.zeros(len(self.labels), bool)
        for keys in (self.positive, self.negative, self.machine):
            is_known[keys % len(self.labels)] = True
        return [self.labels[code] for code in np.flatnonzero(is_known)]


def collect_openimages_cells(
    tables: Sequence[OpenImagesRows], other_labels: Collection[str]
) -> OpenImagesCells:
    """Return the known targets of the rows of several files.

    Args:
        tables: Rows of the files.
        other_labels: Labels that have a column although no row contains them.

    Raises:
        DataError: If a label is both positive and negative in an image; the message contains the
            lines of both rows.
    """
    image_codes: dict[str, int] = {}
    label_codes: dict[str, int] = {}
    codes_of_tables = [
        (_shared_codes(image_codes, table.images), _shared_codes(label_codes, table.labels))
        for table in tables
    ]
    _shared_codes(label_codes, other_labels)
    images, labels = list(image_codes), list(label_codes)
    keys_of_tables = [
        rows[table.image_codes] * len(labels) + columns[table.label_codes]
        for table, (rows, columns) in zip(tables, codes_of_tables, strict=True)
    ]
    positive, negative, machine = (
        _unique_keys(
            [keys[t.kinds == kind] for keys, t in zip(keys_of_tables, tables, strict=True)]
        )
        for kind in (POSITIVE, NEGATIVE, MACHINE)
    )
    both = np.intersect1d(positive, negative, assume_unique=True)
    if len(both):
        raise _contradicting_rows_error(tables, keys_of_tables, both[0], images, labels)
    verified = _unique_keys([positive, negative])
    return OpenImagesCells(images, labels, positive, negative, _without(machine, verified))


def expand_openimages_cells(
    cells: OpenImagesCells, ancestors: Mapping[str, Collection[str]]
) -> tuple[OpenImagesCells, CellKeys]:
    """Expand positive targets to ancestors, and negative targets to descendants.

    Args:
        cells: Known targets, with a column for each label of the hierarchy.
        ancestors: Ancestors of each label of the hierarchy.

    Returns:
        The known targets, and the keys of the cells that verified labels make both positive and
        negative. These cells are unknown. Machine labels do not change cells that verified labels
        make known.
    """
    code_of = {label: code for code, label in enumerate(cells.labels)}
    above: list[list[int]] = [[] for _ in cells.labels]
    below: list[list[int]] = [[] for _ in cells.labels]
    for label, more_general in ancestors.items():
        for ancestor in more_general:
            above[code_of[label]].append(code_of[ancestor])
            below[code_of[ancestor]].append(code_of[label])
    positive = _expand_keys(cells.positive, above)
    negative = _expand_keys(cells.negative, below)
    both = np.intersect1d(positive, negative, assume_unique=True)
    machine = _expand_keys(_without(cells.machine, negative), above)
    machine = _without(_without(machine, negative), positive)
    expanded = replace(
        cells,
        positive=_without(positive, both),
        negative=_without(negative, both),
        machine=machine,
    )
    return expanded, both


def place_of_openimages_label(tables: Sequence[OpenImagesRows], label: str) -> str | None:
    """Return the file and the line of the first row with a label, or None without such a row."""
    for table in tables:
        if label in table.labels:
            row = int(np.flatnonzero(table.label_codes == table.labels.index(label))[0])
            return f"{table.path}, line {line_of_openimages_row(table.path, row)}"
    return None


def _shared_codes(code_of: dict[str, int], texts: Collection[str]) -> CellKeys:
    """Return the code of each text; new texts are added to ``code_of``."""
    return np.fromiter((code_of.setdefault(text, len(code_of)) for text in texts), np.int64)


def _unique_keys(parts: Sequence[CellKeys]) -> CellKeys:
    keys: CellKeys = np.sort(np.concatenate(parts))
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    unique: CellKeys = keys[is_first]
    return unique


def _without(keys: CellKeys, others: CellKeys) -> CellKeys:
    remaining: CellKeys = np.setdiff1d(keys, others, assume_unique=True)
    return remaining


def _expand_keys(keys: CellKeys, related: Sequence[Sequence[int]]) -> CellKeys:
    """Return the keys with the keys of the related columns in the same rows.

    Args:
        keys: Keys of cells.
        related: Columns that are related to each column.
    """
    n_related = np.array([len(columns) for columns in related])
    columns_in_order = np.array([c for columns in related for c in columns], np.int64)
    first = np.cumsum(n_related) - n_related  # of each column in columns_in_order
    rows, columns = np.divmod(keys, len(related))
    counts = n_related[columns]
    position = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    new = columns_in_order[np.repeat(first[columns], counts) + position]
    return _unique_keys([keys, np.repeat(rows, counts) * len(related) + new])


def _contradicting_rows_error(
    tables: Sequence[OpenImagesRows],
    keys_of_tables: Sequence[CellKeys],
    key: np.int64,
    images: Sequence[str],
    labels: Sequence[str],
) -> DataError:
    """Return the error for a cell whose label is positive and negative in its image."""
    places = {}
    for table, keys in zip(tables, keys_of_tables, strict=True):
        for kind in (POSITIVE, NEGATIVE):
            rows = np.flatnonzero((keys == key) & (table.kinds == kind))
            if kind not in places and len(rows):
                line = line_of_openimages_row(table.path, int(rows[0]))
                places[kind] = f"{table.path}, line {line}"
    row, column = divmod(int(key), len(labels))
    return DataError(
        f"{places[POSITIVE]}: a label must be either positive or negative in an image; got "
        f"{quote_of_file(labels[column])} positive for the image {quote_of_file(images[row])}, but "
        f"negative in {places[NEGATIVE]}. Remove one of these rows."
    )
