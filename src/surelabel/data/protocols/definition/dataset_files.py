"""Write the splits of a checked folder as dataset files, which all commands read."""

import csv
from pathlib import Path
from typing import TextIO

import numpy as np

from surelabel.data.protocols.definition.folder_check import ProtocolCheck, SplitCheck
from surelabel.files import atomic_file


def write_protocol_datasets(check: ProtocolCheck, folder: str | Path) -> list[str]:
    """Write one CSV file for each split, with absolute paths of the images that exist.

    A file of labels has one column for each label: 1 is positive, 0 is negative, and an empty cell
    is unknown. A file of captions has the columns ``image`` and ``caption``.

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
        with (
            atomic_file(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as table,
        ):
            _write_rows(table, check.folder, split_check)
        files.append(str(path))
    return files


def _write_rows(table: TextIO, root: Path, check: SplitCheck) -> None:
    writer, rows = csv.writer(table, lineterminator="\n"), check.rows
    if rows.captions:
        writer.writerow(["image", "caption"])
        for row, caption in zip(rows.image_rows, rows.captions, strict=True):
            writer.writerow([str(root / rows.images[row]), caption])
        return
    writer.writerow(["path", *rows.names])
    for image, targets in zip(rows.images, rows.targets, strict=True):
        cells = ["" if np.isnan(target) else f"{target:g}" for target in targets]
        writer.writerow([str(root / image), *cells])
