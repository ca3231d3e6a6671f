"""Detection of the caption format of a file."""

from pathlib import Path
from typing import Protocol

from surelabel.data.captions import coco, csv, scenes, text
from surelabel.data.coco_json import read_coco_json
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
    return CAPTION_FORMATS[detect_caption_format(path)].read(path, images_root=images_root)


def has_captioned_images(path: str | Path) -> bool:
    """Return True if a file is CSV or COCO with captions of images in place of labels.

    Args:
        path: Path of a text file of any format.

    Raises:
        DataError: If the file cannot be read.
    """
    caption_format = detect_caption_format(path)
    if caption_format == "csv":
        return (
            read_first_line(Path(path))
            .replace('"', "")
            .replace(" ", "")
            .startswith("image,caption")
        )
    if caption_format == "coco":
        annotations = read_coco_json(Path(path)).get("annotations")
        first = annotations[0] if isinstance(annotations, list) and annotations else None
        return isinstance(first, dict) and "caption" in first
    return False


def detect_caption_format(path: str | Path) -> str:
    """Return the format of a caption file, a key of ``CAPTION_FORMATS``.

    A file whose first line belongs to no other format is ``text``.

    Raises:
        DataError: If the file does not exist or cannot be read.
    """
    path = Path(path)
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
