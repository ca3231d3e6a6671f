"""Read captions from JSON lines: ``{"image": "a.jpg", "captions": ["a dog", "a puppy"]}``."""

from pathlib import Path
from typing import Any

from surelabel.data.captions.resolution.caption_entries import (
    CaptionEntry,
    clean_caption_image,
    resolve_captions,
)
from surelabel.data.captions.resolution.pair_entries import resolve_pairs
from surelabel.errors import DataError
from surelabel.file_readers import open_lines, parse_json
from surelabel.records import Captions, Pairs


def read(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions from a JSON lines file, in the order of the file.

    A line has the keys ``image`` and ``caption``, with the optional keys ``image_id`` and
    ``caption_id``; or ``image`` and a list ``captions``, with the optional keys ``image_id`` and
    ``caption_ids``. Other keys are ignored, and so are images whose list is empty.

    Args:
        path: Path of the JSON lines file in UTF-8.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.

    Raises:
        DataError: If a line is invalid; the message contains the number of the line.
    """
    path = Path(path)
    return resolve_captions(path, _jsonl_caption_entries(path)[0], images_root=images_root)


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Read images with captions and the ids of both, in the order of the file.

    Args:
        path: Path of the JSON lines file in UTF-8.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.

    Raises:
        DataError: For the reasons of :func:`read`, if an image does not exist, or if some ids are
            missing or repeated.
    """
    path = Path(path)
    entries, images = _jsonl_caption_entries(path)
    return resolve_pairs(path, entries, images_root=images_root, listed_images=images)


def _jsonl_caption_entries(path: Path) -> tuple[list[CaptionEntry], list[str]]:
    """Return the captions of a file, and the paths of all images in the file."""
    entries, images = [], []
    with open_lines(path) as texts:
        numbered = enumerate(texts, start=1)
        lines = [(n, _parse_caption_line(path, n, text)) for n, text in numbered if text.strip()]
    for number, line in lines:
        images.append(clean_caption_image(path, f"line {number}", line["image"]))
        entries += [
            CaptionEntry(f"line {number}", line["image"], caption, line.get("image_id"), id_)
            for caption, id_ in _captions_of_line(line)
        ]
    return entries, images


def _parse_caption_line(path: Path, number: int, text: str) -> dict[str, Any]:
    try:
        line = parse_json(text)
    except ValueError as error:
        raise DataError(
            f"{path}, line {number}: expected one JSON object; got {text.strip()[:40]!r} "
            f"({error}). Correct that line."
        ) from error
    if not isinstance(line, dict) or "image" not in line or not _has_valid_captions(line):
        raise DataError(
            f'{path}, line {number}: expected {{"image": "…", "caption": "…", "image_id": …, '
            '"caption_id": …} or {"image": "…", "captions": ["…"], "image_id": …, "caption_ids": '
            f"[…]}}; got {text.strip()[:60]!r}. The ids are optional. Correct that line."
        )
    return line


def _has_valid_captions(line: dict[str, Any]) -> bool:
    if "caption" in line:
        return not {"captions", "caption_ids"} & set(line)
    captions = line.get("captions")
    ids = line.get("caption_ids", captions)
    if not isinstance(captions, list) or not isinstance(ids, list) or "caption_id" in line:
        return False
    return len(ids) == len(captions)


def _captions_of_line(line: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return each caption of a line with its id, or with None if the line has no ids."""
    if "caption" in line:
        return [(line["caption"], line.get("caption_id"))]
    captions = line["captions"]
    return list(zip(captions, line.get("caption_ids", [None] * len(captions)), strict=True))
