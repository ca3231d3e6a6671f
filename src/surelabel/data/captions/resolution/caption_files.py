"""Detect the caption format of a file, and read captions from the file."""

from pathlib import Path
from typing import Protocol

from surelabel.data.captions import coco, csv, flickr, jsonl, scenes, text
from surelabel.data.coco_json import read_coco_json
from surelabel.data.text_lists import read_first_line
from surelabel.errors import DataError
from surelabel.file_readers import parse_json
from surelabel.records import Captions, Pairs


class CaptionFormat(Protocol):
    """Interface of the modules that read a caption format."""

    def read(self, path: str | Path, *, images_root: str | Path | None = None) -> Captions:
        """Read captions from a file of the format."""

    def read_pairs(self, path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
        """Read images with captions from a file of the format."""


CAPTION_FORMATS: dict[str, CaptionFormat] = {
    "coco": coco,
    "csv": csv,
    "flickr": flickr,
    "jsonl": jsonl,
    "scenes": scenes,
    "text": text,
}

_SCENE_SUFFIXES = (".jsonl", ".ndjson")
_CSV_STARTS = ("image,caption", '"image","caption"', "path,", '"path",')  # csv refuses path


def read_captions(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions from a file in one of the formats of ``CAPTION_FORMATS``.

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


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Read images with captions from a file in one of the formats of ``CAPTION_FORMATS``.

    Image ids and caption ids are read from the file. A file ``scenes.jsonl`` has graded relevance.
    If an image has a text twice, the text is kept once. A warning states the number of repeated
    texts. Another warning names images without a caption, which are not used.

    Args:
        path: Path of a caption file. The suffix or the first line of the file determines the
            format.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.

    Returns:
        Images in the order of their first caption, and captions in the order of the file, with
        single spaces between words.

    Raises:
        DataError: If the file cannot be read, has another format, or has no captions or no images.
            Also if a caption is invalid, if an image does not exist, or if some ids are missing or
            repeated.
    """
    path = Path(path)
    return CAPTION_FORMATS[detect_caption_format(path)].read_pairs(path, images_root=images_root)


def has_captioned_images(path: str | Path) -> bool:
    """Return whether a file has captions of images, in place of labels or generated scenes.

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
        if read_first_line(Path(path)).startswith("["):
            return False  # a file of Label Studio
        annotations = read_coco_json(Path(path)).get("annotations")
        first = annotations[0] if isinstance(annotations, list) and annotations else None
        return isinstance(first, dict) and "caption" in first
    return caption_format in ("flickr", "jsonl")


def detect_caption_format(path: str | Path) -> str:
    """Return the format of a caption file, a key of ``CAPTION_FORMATS``.

    A file whose first line belongs to no other format has the format ``text``.

    Raises:
        DataError: If the file does not exist or cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} does not exist. Give the path of a file with captions.")
    if path.suffix.lower() == ".csv":
        return "csv"
    first_line = read_first_line(path)
    if first_line.startswith("{") and _is_caption_line(first_line):
        return "jsonl"
    if path.suffix.lower() in _SCENE_SUFFIXES:
        return "scenes"
    if first_line.startswith(_CSV_STARTS):
        return "csv"
    if first_line.startswith("{") and _is_scene_line(first_line):
        return "scenes"
    if first_line.startswith("{") or path.suffix.lower() == ".json":
        return "coco"
    return "flickr" if flickr.TOKEN_LINE.fullmatch(first_line) else "text"


def _is_scene_line(line: str) -> bool:
    return {"path", "captions"} <= _keys_of_line(line)


def _is_caption_line(line: str) -> bool:
    keys = _keys_of_line(line)
    return "image" in keys and bool(keys & {"caption", "captions"})


def _keys_of_line(line: str) -> set[str]:
    try:
        return set(parse_json(line))
    except ValueError:
        return set()
