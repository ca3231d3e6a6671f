"""Detection of the caption format of a file."""

from pathlib import Path
from typing import Protocol

from surelabel.data.captions import coco, csv, scenes, text
from surelabel.data.text_lists import read_first_line
from surelabel.errors import DataError
from surelabel.file_readers import parse_json
from surelabel.records import Captions


class CaptionFormat(Protocol):
    """Interface of the modules that read a caption format."""

    def read(self, path: str | Path, *, images_root: str | Path | None = None) -> Captions:
        """Read captions from a file of the format."""


CAPTION_FORMATS: dict[str, CaptionFormat] = {
    "coco": coco,
    "csv": csv,
    "scenes": scenes,
    "text": text,
}

_SUFFIXES = {".csv": "csv", ".jsonl": "scenes", ".ndjson": "scenes"}
_CSV_STARTS = ("image,caption", '"image","caption"', "path,", '"path",')  # csv refuses path


def read_captions(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions from COCO captions, CSV, a collection of scenes, or a text file.

    The images need not exist, because captions can be used without images.

    Args:
        path: Path of a caption file. The suffix or the first line of the file determines the
            format. A file whose first line belongs to no other format has one caption per line.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used. Files with one caption per line have no image paths.

    Returns:
        Captions in the order of the file, with single spaces between words.

    Raises:
        DataError: If the file cannot be read, has another format or no captions, or if a caption is
            invalid or has no image.
    """
    path = Path(path)
    return CAPTION_FORMATS[_detect_caption_format(path)].read(path, images_root=images_root)


def _detect_caption_format(path: Path) -> str:
    if not path.exists():
        raise DataError(f"{path}: no such file. Give a file with captions.")
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    first_line = read_first_line(path)
    if first_line.startswith(_CSV_STARTS):
        return "csv"
    if first_line.startswith("{") and _is_scene_line(first_line):
        return "scenes"
    if first_line.startswith("{") or path.suffix.lower() == ".json":
        return "coco"
    return "text"


def _is_scene_line(line: str) -> bool:
    try:
        return {"path", "captions"} <= set(parse_json(line))
    except ValueError:
        return False
