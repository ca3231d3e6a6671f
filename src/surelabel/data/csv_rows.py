"""Read rows of CSV files with their line numbers."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file, describe_undecodable_text

SAVE_CSV_AS_UTF8 = "Save the file as UTF-8; in a spreadsheet program, select the format CSV UTF-8."
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


NumberedRow = tuple[int, list[str]]


@contextmanager
def open_csv_rows(
    path: Path, *, delimiter: str = ",", n_bytes: int | None = None
) -> Iterator[Iterator[NumberedRow]]:
    """Open a CSV file for reading rows, each with the number of the first line of the row.

    Args:
        path: Path of a file in UTF-8, with or without BOM, quotes and CRLF.
        delimiter: Character between the cells, a key of ``DELIMITERS``.
        n_bytes: Number of bytes at the beginning of the file that are read. If None, the whole file
            is read.

    Raises:
        DataError: If the path is not a regular file, or if the file is not CSV in UTF-8.
    """
    check_regular_file(path)
    try:
        with _open_csv_text(path, n_bytes) as file:
            yield _numbered_csv_rows(file, delimiter)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason, remedy = str(error), "Save the file in this format."
        if isinstance(error, UnicodeDecodeError) or "NUL" in reason:
            reason, remedy = _describe_csv_encoding(path), SAVE_CSV_AS_UTF8
        raise DataError(
            f"{path} must be a CSV file in UTF-8 with cells separated by {DELIMITERS[delimiter]}; "
            f"got: {reason}. {remedy}"
        ) from error


def _open_csv_text(path: Path, n_bytes: int | None) -> TextIO:
    if n_bytes is None:
        return path.open(encoding="utf-8-sig", newline="")
    with path.open("rb") as file:
        content = BytesIO(file.read(n_bytes))
    return TextIOWrapper(content, encoding="utf-8-sig", newline="")


def _numbered_csv_rows(file: TextIO, delimiter: str) -> Iterator[NumberedRow]:
    reader, line = csv.reader(file, delimiter=delimiter, strict=True), 1
    for row in reader:
        if line == 1 and any("\0" in cell for cell in row):
            raise csv.Error("NUL")  # of UTF-16
        yield line, row
        line = reader.line_num + 1


def _describe_csv_encoding(path: Path) -> str:
    """Describe the first line of a file that is not text in UTF-8, with its number."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                if b"\0" not in line:
                    line.decode("utf-8-sig")
                    continue
                start = line.index(0)
            except UnicodeDecodeError as error:
                start = error.start
            return f"line {number} contains {describe_undecodable_text(line, start)}"
    return "a file that changed during reading"
