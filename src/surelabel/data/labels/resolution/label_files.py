"""Detection of the annotation format of a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from surelabel.data.labels import coco, csv, jsonl, voc
from surelabel.data.text_lists import read_first_line
from surelabel.errors import DataError
from surelabel.file_readers import parse_json
from surelabel.records import LabelledImages


class LabelFormat(Protocol):
    """Interface of the modules that read an annotation format."""

    def read(
        self,
        path: str | Path,
        *,
        images_root: str | Path | None = None,
        names: Sequence[str] | None = None,
    ) -> LabelledImages:
        """Read annotated images from a file or folder of the format."""


FORMATS: dict[str, LabelFormat] = {"csv": csv, "jsonl": jsonl, "coco": coco, "voc": voc}

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def read_labels(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from CSV, JSON lines, COCO instances or a folder of VOC XML.

    Args:
        path: Path of an annotation file or folder. The suffix or the first line of the file
            determines the format.
        images_root: Folder to which image paths are relative. If None, the default folder of the
            format is used.
        names: Labels to return, in the order of the columns. If None, the labels of the file are
            returned.

    Raises:
        DataError: If the file has an unsupported format, is damaged or incomplete, or refers to
            images that do not exist.
    """
    path = Path(path)
    return FORMATS[_detect_label_file_format(path)].read(path, images_root=images_root, names=names)


def _detect_label_file_format(path: Path) -> str:
    if path.is_dir():
        return "voc"
    if not path.exists():
        raise DataError(f"{path}: no such file or folder. Give a file with labels.")
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    first_line = read_first_line(path)
    if first_line.startswith(("path,", '"path",')):
        return "csv"
    if first_line.startswith("{"):
        return "jsonl" if _is_jsonl_label_file(first_line) else "coco"
    raise DataError(
        f"{path} must have labels as CSV (path,dog,cat or path,label), JSON lines, COCO "
        f"instances, or be a folder of VOC XML; got {first_line[:40]!r}. Convert the file to one "
        "of these formats."
    )


def _is_jsonl_label_file(text: str) -> bool:
    try:
        return "path" in parse_json(text)
    except ValueError:
        return False
