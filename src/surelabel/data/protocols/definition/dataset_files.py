"""Write the splits of a checked folder as dataset files, which all commands read."""

import csv
import json
from pathlib import Path
from typing import TextIO

import numpy as np

from surelabel.data.labels import multihot
from surelabel.data.protocols.definition.folder_check import ProtocolCheck, SplitCheck
from surelabel.files import atomic_file
from surelabel.records import LabelledImages

IMAGE_COLUMN = "path"


def write_protocol_datasets(check: ProtocolCheck, folder: str | Path) -> list[str]:
    """Write one file for each split, with absolute paths of the images that exist.

    A CSV file of labels has one column for each label: 1 is positive, 0 is negative, and an empty
    cell is unknown. A file of captions has JSON lines with the image, the caption and their
    identifiers, which relevance files refer to.

    If a label is called ``path``, such as a tag of NUS-WIDE, the file is a multi-hot ``.npz`` file,
    because the column of images in CSV has this name.

    Args:
        check: Result of the check of a folder.
        folder: Output folder.

    Returns:
        Paths of the files, in the order of the splits.

    Raises:
        DataError: If a file cannot be written.
    """
    files = []
    for split_check in check.splits:
        path = Path(folder, f"{split_check.split.name}.csv")
        if split_check.rows.captions:
            path = path.with_suffix(".jsonl")
            with atomic_file(path) as temporary:
                temporary.write_text(_caption_lines(check.folder, split_check), encoding="utf-8")
            files.append(str(path))
            continue
        if IMAGE_COLUMN in split_check.rows.names:
            path = path.with_suffix(".npz")
            multihot.write(_labelled_images(check.folder, split_check), path)
            files.append(str(path))
            continue
        with (
            atomic_file(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as table,
        ):
            _write_rows(table, check.folder, split_check)
        files.append(str(path))
    return files


def _labelled_images(root: Path, check: SplitCheck) -> LabelledImages:
    rows = check.rows
    return LabelledImages([str(root / image) for image in rows.images], rows.names, rows.targets)


def _caption_lines(root: Path, check: SplitCheck) -> str:
    """Return a JSON line for each caption."""
    rows, lines = check.rows, list[str]()
    for number, (row, caption) in enumerate(zip(rows.image_rows, rows.captions, strict=True)):
        entry: dict[str, object] = {"image": str(root / rows.images[row]), "caption": caption}
        entry |= {"image_id": rows.image_ids[row]} if rows.image_ids else {}
        entry |= {"caption_id": rows.caption_ids[number]} if rows.caption_ids else {}
        lines.append(json.dumps(entry) + "\n")
    return "".join(lines)


def _write_rows(table: TextIO, root: Path, check: SplitCheck) -> None:
    writer, rows = csv.writer(table, lineterminator="\n"), check.rows
    writer.writerow([IMAGE_COLUMN, *rows.names])
    for image, targets in zip(rows.images, rows.targets, strict=True):
        cells = ["" if np.isnan(target) else f"{target:g}" for target in targets]
        writer.writerow([str(root / image), *cells])
