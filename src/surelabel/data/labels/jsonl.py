"""Read JSON lines: ``{"path": "a.jpg", "labels": ["dog"], "absent": ["cat"]}``."""

import json
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

from surelabel.data.labels.resolution.image_entries import (
    ImageEntry,
    image_entry,
    is_image_entry,
    resolve_image_entries,
)
from surelabel.data.labels.resolution.image_resolution import unresolved_image_path
from surelabel.errors import DataError, InputError
from surelabel.file_readers import open_lines, parse_json
from surelabel.files import atomic_file
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from a JSON lines file with one image per line.

    Labels in ``labels`` are positive, and labels in ``absent`` are negative. If a line has the key
    ``absent``, labels in neither list are unknown. Otherwise, labels that are not in ``labels`` are
    negative.

    Args:
        path: Path of a JSON lines file in UTF-8.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.
        names: Labels to return, in the order of the columns. If None, the sorted labels of the file
            are returned.

    Raises:
        DataError: If a line is invalid, if an image does not exist, or if a label is not in
            ``names``. The message contains the number of an invalid line.
    """
    path = Path(path)
    lines = _read_jsonl_lines(path)
    return resolve_image_entries(path, lines, images_root=images_root, names=names)


def write(labelled: LabelledImages, path: str | Path) -> None:
    """Write the positive and negative labels of annotated images; unknown labels are omitted.

    Args:
        labelled: Images with targets 0, 1 or unknown.
        path: Path of the file. Paths of images inside the folder of this file are written relative
            to the folder.

    Raises:
        InputError: If a target is between 0 and 1, or if the images state how they were chosen.
        DataError: If the file cannot be written.
    """
    path = Path(path)
    if labelled.row_selection is not None:
        raise InputError(
            "JSON lines cannot store how each row was chosen; got images with row_selection. Write "
            "CSV (.csv) instead."
        )
    if soft := labelled.targets[(labelled.targets > 0) & (labelled.targets < 1)].tolist():
        raise InputError(
            f"Targets in JSON lines must be 0 or 1; got {soft[0]}. Write CSV (.csv) instead."
        )
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for image, targets, known in zip(
            labelled.paths, labelled.targets, labelled.known, strict=True
        ):
            line = {
                "path": unresolved_image_path(image, path.parent),
                "labels": list(compress(labelled.names, known & (targets == 1))),
                "absent": list(compress(labelled.names, known & (targets == 0))),
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _read_jsonl_lines(path: Path) -> list[ImageEntry]:
    with open_lines(path) as texts:
        lines = enumerate(texts, start=1)
        return [_parse_jsonl_line(path, number, text) for number, text in lines if text.strip()]


def _parse_jsonl_line(path: Path, number: int, text: str) -> ImageEntry:
    try:
        entry = parse_json(text)
    except ValueError as error:
        raise DataError(
            f"{path}, line {number}: expected one JSON object; got {text.strip()[:40]!r} "
            f"({error}). Correct that line."
        ) from error
    if not is_image_entry(entry):
        raise DataError(
            f'{path}, line {number}: expected {{"path": "…", "labels": ["…"], "absent": ["…"]}}, '
            f"where absent is optional; got {text.strip()[:60]!r}. Correct that line."
        )
    return image_entry(f"{path}, line {number}", entry, remedy="Correct that line.")
