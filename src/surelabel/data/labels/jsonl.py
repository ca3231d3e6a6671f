"""Labels as JSON lines: ``{"path": "a.jpg", "labels": ["dog"], "absent": ["cat"]}``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.data.labels.resolving import few, labelled_images, path_beside, vocabulary
from surelabel.errors import DataError, InputError
from surelabel.files import new_file
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class _Line:
    path: str
    labels: list[str]
    absent: list[str] | None


def read(
    path: str | Path,
    *,
    pictures_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read labels, one picture a line.

    Without ``absent``, all labels that the line does not mention are absent. With it,
    they are unknown.

    Args:
        path: The file, in UTF-8.
        pictures_root: Where relative paths start; the folder of the file when None.
        names: Labels that were looked for, in this order; all that are mentioned, sorted,
            when None.

    Raises:
        DataError: with the number of the line that is wrong, the pictures that do not
            exist, or the labels that are not in ``names``.
    """
    path = Path(path)
    lines = _lines(path)
    seen = {label for line in lines for label in (*line.labels, *(line.absent or ()))}
    columns = vocabulary(path, seen, names)
    place = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(lines), len(columns)))
    for row, line in zip(targets, lines, strict=True):
        if line.absent is not None:
            row[:] = np.nan
            row[[place[label] for label in line.absent]] = 0.0
        row[[place[label] for label in line.labels]] = 1.0
    pictures = [line.path for line in lines]
    return labelled_images(
        path, pictures, columns, targets, pictures_root=pictures_root, names=names
    )


def write(labelled: LabelledImages, path: str | Path) -> None:
    """Write labels, present and absent ones; what is in neither list is unknown.

    Args:
        labelled: Pictures and labels, each 0, 1 or unknown.
        path: The file; paths below its folder are written relative to it.

    Raises:
        InputError: a target lies between 0 and 1.
        DataError: the place cannot be written.
    """
    path = Path(path)
    if unsure := labelled.targets[(labelled.targets > 0) & (labelled.targets < 1)].tolist():
        raise InputError(
            f"JSON lines hold labels that are present or absent. Got a target of {unsure[0]}. "
            "Write CSV (.csv) instead."
        )
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for picture, targets, known in zip(
            labelled.paths, labelled.targets, labelled.known, strict=True
        ):
            line = {
                "path": path_beside(picture, path.parent),
                "labels": list(compress(labelled.names, known & (targets == 1))),
                "absent": list(compress(labelled.names, known & (targets == 0))),
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _lines(path: Path) -> list[_Line]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return [_line(path, n, text) for n, text in enumerate(file, start=1) if text.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} must be JSON lines in UTF-8. Got: {error}. Save it as such."
        ) from error


def _line(path: Path, number: int, text: str) -> _Line:
    try:
        entry = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}, line {number}: expected one JSON object, got {text.strip()[:40]!r} "
            f"({error.msg}). Correct that line."
        ) from error
    if not _is_entry(entry):
        raise DataError(
            f'{path}, line {number}: expected {{"path": "…", "labels": ["…"], "absent": ["…"]}}, '
            f"absent at will, got {text.strip()[:60]!r}. Correct that line."
        )
    line = _Line(entry["path"], entry["labels"], entry.get("absent"))
    if both := sorted(set(line.labels) & set(line.absent or ())):
        raise DataError(
            f"{path}, line {number}: {few(both)} cannot be present and absent. Correct that line."
        )
    return line


def _is_entry(entry: Any) -> bool:
    def names(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(name, str) and name for name in value)

    return (
        isinstance(entry, dict)
        and isinstance(entry.get("path"), str)
        and bool(entry["path"])
        and names(entry.get("labels"))
        and (entry.get("absent") is None or names(entry["absent"]))
    )
