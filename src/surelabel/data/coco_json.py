"""Read JSON files of COCO, and find the entries that annotations refer to by id."""

from pathlib import Path
from typing import Any

from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json


def read_coco_json(path: Path) -> dict[str, Any]:
    """Return the content of a COCO file.

    Raises:
        DataError: If the file cannot be read, is not valid JSON, or is not one JSON object.
    """
    content = read_json(path, kind="a COCO file in JSON", remedy="Correct the file.")
    if not isinstance(content, dict):
        raise DataError(
            f"{path} must be a COCO file with one JSON object; got a value of type "
            f"{type(content).__name__}. Correct the file."
        )
    return content


def coco_values_by_id(
    path: Path, kind: str, entries: list[dict[str, Any]], key: str
) -> dict[Any, str]:
    """Return one field of each entry as text by the id of the entry, such as image file names.

    Args:
        path: Path of the file in error messages.
        kind: Kind of the entries in error messages, such as ``images``.
        entries: Entries with the field ``id`` and the field ``key``.
        key: Name of the field, such as ``file_name``.

    Raises:
        KeyError, TypeError: If an entry is not an object with both fields, or if an id is a list or
            an object.
        DataError: If an id is repeated.
    """
    values: dict[Any, str] = {}
    for entry in entries:
        if entry["id"] in values:
            raise DataError(
                f"The ids of {kind} in {path} must be unique; the id {quote_of_file(entry['id'])} "
                "is repeated. Remove the repeated entries, or change their ids."
            )
        values[entry["id"]] = str(entry[key])
    return values
