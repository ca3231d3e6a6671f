"""Read the class descriptions of Open Images: a CSV file of machine identifiers and names."""

from pathlib import Path

from surelabel.data.csv_rows import open_csv_rows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

MID_START = "/"  # of machine identifiers (MIDs), such as /m/0bt9lr


def find_class_descriptions(folder: Path) -> Path | None:
    """Return the class descriptions in a folder, or None if there is no such file.

    The official names are ``class-descriptions.csv``, ``oidv7-class-descriptions.csv`` and
    ``class-descriptions-boxable.csv``. A file of all classes is preferred to a file of the boxable
    classes.

    Args:
        folder: Path of the folder.

    Raises:
        DataError: If several files describe all classes. Also if no file describes all classes, and
            several files describe the boxable classes.
    """
    files = sorted(folder.glob("*class-descriptions*.csv"))
    complete = [file for file in files if "boxable" not in file.name]
    candidates = complete or files
    if len(candidates) > 1:
        raise DataError(
            f"{folder} must contain one file of class descriptions; got "
            f"{' and '.join(file.name for file in candidates)}. Give --class-descriptions FILE (in "
            "Python class_descriptions=FILE)."
        )
    return candidates[0] if candidates else None


def read_class_descriptions(path: Path) -> dict[str, str]:
    """Return the name of each class by its machine identifier (MID).

    The columns are MID and name. The first line is a header if its first cell is no MID.

    Args:
        path: Path of a CSV file in UTF-8.

    Raises:
        DataError: If the file cannot be read, or if a line has no MID or no name, or repeats a MID
            with another name. The message contains the number of the line.
    """
    names: dict[str, str] = {}
    with open_csv_rows(path) as rows:
        for number, (line, row) in enumerate(rows):
            if not row or (number == 0 and not row[0].startswith(MID_START)):
                continue
            label, name = (cell.strip() for cell in row) if len(row) == 2 else ("", "")
            if not label.startswith(MID_START) or not name:
                raise DataError(
                    f"{path}, line {line}: expected a MID and a name, such as /m/0bt9lr,Dog; got "
                    f"{quote_of_file(','.join(row))}. Correct that line."
                )
            if names.setdefault(label, name) != name:
                raise DataError(
                    f"{path}, line {line}: a MID must have one name; got {quote_of_file(label)} "
                    f"with {quote_of_file(names[label])} and {quote_of_file(name)}. Remove one of "
                    "these lines."
                )
    return names
