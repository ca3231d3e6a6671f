"""Read and format the rows of a file of corrections, which has one row per image and label."""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from math import nan
from pathlib import Path
from typing import NamedTuple

from surelabel.counts import format_count
from surelabel.data.csv_rows import DELIMITERS, open_csv_rows
from surelabel.data.labels.resolution.row_selection_cells import (
    SELECTION_COLUMNS,
    find_selection_columns,
    parse_row_selection,
)
from surelabel.data.spreadsheet_cells import spreadsheet_safe_cell, text_of_spreadsheet_cell
from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file, quote_of_file
from surelabel.records import RANDOM_ROW

REQUIRED_COLUMNS = ("path", "label", "corrected")
LOG_COLUMNS = (
    *REQUIRED_COLUMNS,
    "probability",
    *SELECTION_COLUMNS,
    *("query", "rank", "time", "event"),
)
UNDO_PREFIX = "undo "  # of an event that withdraws another event

_ORDER_COLUMNS = ("time", "event")  # if a file has one of them, its later rows replace earlier ones
_EVENT = re.compile(r"(?:undo )?e(\d{1,7})-[0-9a-f]{16}", re.ASCII)  # with its number of rows
_UNKNOWN = "unknown"
_TARGETS = {  # accepted texts of the column "corrected", in lower case
    **dict.fromkeys(("1", "1.0", "1,0", "true", "yes", "positive"), 1.0),
    **dict.fromkeys(("0", "0.0", "0,0", "false", "no", "negative"), 0.0),
    **dict.fromkeys((_UNKNOWN, "?"), nan),
}


class CorrectionRow(NamedTuple):
    """Row of a file of corrections.

    A row with an empty label states that the image was sampled at random.

    Attributes:
        path: Path of the image in the file.
        label: Label, or an empty text.
        target: Corrected target: 1 is positive, 0 is negative, NaN is unknown.
        probability: Probability of the label at the time of the correction, in [0, 1], or NaN.
        chosen_by: ``random``, the key of a strategy, or an empty text.
        inclusion_probability: Probability in (0, 1] of a random row; NaN for other rows.
        query: Query whose result contained the image, or an empty text.
        rank: Position of the image in the result, counted from 0, or None.
        time: Time in UTC, or an empty text.
        event: Identifier of the event that wrote the row, or an empty text.
        line: Number of the line, or 0 if the row was not read from a file.
    """

    path: str
    label: str
    target: float
    probability: float = nan
    chosen_by: str = ""
    inclusion_probability: float = nan
    query: str = ""
    rank: int | None = None
    time: str = ""
    event: str = ""
    line: int = 0

    @property
    def is_sampling(self) -> bool:
        """Return whether the row states only that the image was sampled at random."""
        return not self.label

    @property
    def is_undo(self) -> bool:
        """Return whether the row belongs to an event that withdraws another event."""
        return self.event.startswith(UNDO_PREFIX)


@dataclass(frozen=True)
class CorrectionTable:
    """Rows of a file of corrections.

    Attributes:
        path: Path of the file.
        header: Names of the columns.
        rows: Rows with a correction, and rows of sampled images, in the order of the file.
        n_bytes: Number of bytes up to the end of the last complete event. The file can have more
            bytes if a process ended while it wrote.
    """

    path: Path
    header: Sequence[str]
    rows: Sequence[CorrectionRow]
    n_bytes: int

    @property
    def is_ordered(self) -> bool:
        """Return whether later rows of the same image and label replace earlier ones."""
        return not set(_ORDER_COLUMNS).isdisjoint(self.header)

    @property
    def has_selection(self) -> bool:
        """Return whether the file states how each row was chosen."""
        return set(SELECTION_COLUMNS) <= set(self.header)


def is_correction_header(header: Sequence[str]) -> bool:
    """Return whether the columns of a table are those of a file of corrections.

    Example:
        >>> is_correction_header(["path", "label", "corrected"])
        True
    """
    return set(REQUIRED_COLUMNS) <= set(header)


def read_correction_header(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter of a file of corrections and the names of its columns.

    If no delimiter gives the required columns, the delimiter is a comma.

    Raises:
        DataError: If the file is not CSV in UTF-8.
    """
    delimiters = [*DELIMITERS]
    for delimiter in (*delimiters, delimiters[0]):
        with open_csv_rows(path, delimiter=delimiter) as rows:
            header = [cell.strip() for cell in next(rows, (1, []))[1]]
        if is_correction_header(header):
            break
    return delimiter, header


def read_correction_rows(path: str | Path) -> CorrectionTable:
    """Read a file of corrections, without an event at its end that was not written completely.

    The file is CSV in UTF-8, separated by commas, semicolons or tabs, with the columns ``path``,
    ``label`` and ``corrected``; the other columns of ``LOG_COLUMNS`` are optional, and further
    columns are ignored. Rows with an empty cell ``corrected`` are left out, except those of sampled
    images.

    Args:
        path: Path of the CSV file.

    Raises:
        DataError: If a column is missing, or a line or a cell is invalid.
    """
    path = Path(path)
    delimiter, header = read_correction_header(path)
    if missing := [name for name in REQUIRED_COLUMNS if name not in header]:
        raise DataError(
            f"{path} must contain the columns {', '.join(REQUIRED_COLUMNS)}; the column "
            f"{missing[0]} is missing. Give a file that `surelabel audit` or `surelabel serve` "
            "wrote, with all its columns."
        )
    find_selection_columns(str(path), header)
    n_bytes = _complete_size(path, header)
    rows = list[CorrectionRow]()
    with open_csv_rows(path, delimiter=delimiter, n_bytes=n_bytes) as numbered:
        next(numbered)
        for line, cells in numbered:
            if any(cells) and (row := _parse_row(path, line, header, cells)) is not None:
                rows.append(row)
    return CorrectionTable(path, header, rows, n_bytes)


def format_correction_rows(rows: Sequence[CorrectionRow]) -> str:
    """Return rows as lines of CSV with the columns ``LOG_COLUMNS``.

    A cell that a spreadsheet program would execute as a formula is prefixed with an apostrophe.
    """
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow(
            [
                spreadsheet_safe_cell(row.path),
                spreadsheet_safe_cell(row.label),
                "" if row.is_sampling else _format_target(row.target),
                _format_number(row.probability, ".6g"),
                row.chosen_by,
                _format_number(row.inclusion_probability, ".17g"),
                spreadsheet_safe_cell(row.query),
                "" if row.rank is None else row.rank,
                row.time,
                row.event,
            ]
        )
    return file.getvalue()


def _parse_row(
    path: Path, line: int, header: Sequence[str], cells: Sequence[str]
) -> CorrectionRow | None:
    """Return a row, or None if its target is not corrected.

    Raises:
        DataError: If the number of cells is wrong, or a cell is invalid.
    """
    place = f"{path}, line {line}"
    if len(cells) != len(header):
        raise DataError(
            f"{place}: expected {format_count(len(header), 'column')} as in the header; got "
            f"{len(cells)}. Correct that line."
        )
    cell = dict(zip(header, cells, strict=True))
    key, inclusion_probability = parse_row_selection(
        place, *(cell.get(name, "") for name in SELECTION_COLUMNS)
    )
    text = cell["corrected"].strip().lower()
    if text and text not in _TARGETS:
        raise DataError(
            f"{place}: the cell in the column corrected must be 1, 0, unknown or empty; got "
            f"{quote_of_file(cell['corrected'])}. Correct that cell."
        )
    is_sampling = not text and not cell["label"] and key == RANDOM_ROW
    if not text and not is_sampling:
        return None
    for name in ("path", *(() if is_sampling else ("label",))):
        if not cell[name]:
            raise DataError(
                f"{place}: the cell in the column {name} must not be empty, because the row has a "
                "correction; got an empty cell. Correct that line."
            )
    return CorrectionRow(
        text_of_spreadsheet_cell(cell["path"]),
        text_of_spreadsheet_cell(cell["label"]),
        _TARGETS.get(text, nan),
        _parse_number(cell.get("probability", "")),
        key,
        inclusion_probability,
        text_of_spreadsheet_cell(cell.get("query", "")),
        int(rank) if (rank := cell.get("rank", "")).isdecimal() and len(rank) < 16 else None,
        cell.get("time", ""),
        cell.get("event", ""),
        line,
    )


def _complete_size(path: Path, header: Sequence[str]) -> int:
    """Return the number of bytes of a file up to the end of its last complete event.

    Each event is written at once. If a process ended while it wrote, the last line has no line
    break, and the event has fewer rows than its identifier states.
    """
    with open_regular_file(path) as file:
        content = file.read()
    if tuple(header) != LOG_COLUMNS or content.endswith(b"\n"):
        return len(content)
    end = content.rfind(b"\n") + 1
    last_event = _event_of_line(content[end:])
    if last_event is not None:  # only the line break is missing, as some editors write
        return len(content)
    start, event, n_rows = end, None, 0
    while start:
        line_start = content.rfind(b"\n", 0, start - 1) + 1
        event_of_line = _event_of_line(content[line_start : start - 1])
        if event_of_line is None or event not in (None, event_of_line):
            break
        start, event, n_rows = line_start, event_of_line, n_rows + 1
    expected = _EVENT.fullmatch(event) if event else None
    return start if expected and n_rows < int(expected[1]) else end


def _event_of_line(line: bytes) -> str | None:
    """Return the event of a complete line, or None if the line is not complete."""
    try:
        cells = next(csv.reader([line.decode().rstrip("\r")], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return None
    is_complete = len(cells) == len(LOG_COLUMNS) and _EVENT.fullmatch(cells[-1])
    return cells[-1] if is_complete else None


def _parse_number(text: str) -> float:
    """Return a number in [0, 1], or NaN for another text, which is only information."""
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return nan
    return number if 0 <= number <= 1 else nan


def _format_target(target: float) -> str:
    return _UNKNOWN if math.isnan(target) else f"{target:.0f}"


def _format_number(number: float, form: str) -> str:
    return "" if math.isnan(number) else format(number, form)
