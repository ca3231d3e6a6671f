"""Rows of CSV files with the numbers of their lines."""

import csv
from collections.abc import Iterator
from pathlib import Path

from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def numbered_csv_rows(path: Path, *, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file, each with the number of the first line of the row.

    Args:
        path: Path of a file in UTF-8, with or without BOM, quotes and CRLF.
        delimiter: Character between the cells, a key of ``DELIMITERS``.

    Raises:
        DataError: If the path is not a regular file, or if the file is not CSV in UTF-8.
    """
    check_regular_file(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader, line = csv.reader(file, delimiter=delimiter, strict=True), 1
            for row in reader:
                yield line, row
                line = reader.line_num + 1
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{path} must be a CSV file in UTF-8, separated by {DELIMITERS[delimiter]}; got: "
            f"{error}. Save the file in this format."
        ) from error
