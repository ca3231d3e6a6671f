"""Labels in whatever format a file has."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from surelabel.data.labels import coco, csv, jsonl, voc
from surelabel.errors import DataError
from surelabel.records import LabelledImages


class Format(Protocol):
    """How a module reads one format of labels."""

    def read(
        self,
        path: str | Path,
        *,
        pictures_root: str | Path | None = None,
        names: Sequence[str] | None = None,
    ) -> LabelledImages:
        """The labels of a file, or folder, of this format."""


FORMATS: dict[str, Format] = {"csv": csv, "jsonl": jsonl, "coco": coco, "voc": voc}

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def read_labels(
    path: str | Path,
    *,
    pictures_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read labels: CSV, JSON lines, COCO instances or a folder of VOC XML.

    Args:
        path: The file or folder; its suffix decides, or else its first line.
        pictures_root: Where relative paths start; see the formats.
        names: Labels wanted, in this order; those of the file when None.

    Raises:
        DataError: it has none of the formats, or is wrong in one of the ways they name.
    """
    path = Path(path)
    return FORMATS[_format_of(path)].read(path, pictures_root=pictures_root, names=names)


def _format_of(path: Path) -> str:
    if path.is_dir():
        return "voc"
    if not path.exists():
        raise DataError(f"{path}: no such file or folder. Give a file of labels.")
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    first = _first_line(path)
    if first.startswith(("path,", '"path",')):
        return "csv"
    if first.startswith("{"):
        return "jsonl" if _is_json_line(first) else "coco"
    raise DataError(
        f"{path} must hold labels as CSV (path,dog,cat or path,label), JSON lines, COCO "
        f"instances, or be a folder of VOC XML. Got {first[:40]!r}. Convert it to one of them."
    )


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.readline(100_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} must hold labels as text in UTF-8. Got: {error}.") from error


def _is_json_line(text: str) -> bool:
    try:
        return "path" in json.loads(text)
    except json.JSONDecodeError:
        return False
