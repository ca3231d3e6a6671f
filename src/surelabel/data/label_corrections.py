"""Read and write CSV files of corrections; each row corrects one label of one image."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import overload

import numpy as np

from surelabel.data.labels.resolution.correction_history import CorrectionHistory
from surelabel.data.labels.resolution.correction_rows import read_correction_rows
from surelabel.data.spreadsheet_cells import spreadsheet_safe_cell
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.files import atomic_file
from surelabel.records import LabelledFeatures, LabelledImages, LabelledScores
from surelabel.storage.image_paths import absolute_image_path

CORRECTION_COLUMNS = ("path", "label", "target", "probability", "error_probability", "corrected")


@dataclass(frozen=True)
class LabelCorrection:
    """Target of one label of an image.

    Attributes:
        path: Path of the image, or identifier of a row of vectors or scores.
        label: Label.
        target: Corrected target: 1 is positive, 0 is negative, NaN is unknown.
    """

    path: str
    label: str
    target: float


def write_label_corrections(
    path: str | Path, rows: Iterable[tuple[str, str, int, float, float]]
) -> None:
    """Write a file in which an annotator fills the column ``corrected``.

    A cell that a spreadsheet program would execute as a formula is prefixed with an apostrophe.

    Args:
        path: Path of the CSV file. An existing file is replaced.
        rows: For each row, path of the image, label, target, probability, and probability of an
            error.

    Raises:
        DataError: If the file cannot be written.
    """
    with (
        atomic_file(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CORRECTION_COLUMNS)
        for image, label, target, probability, error in rows:
            cells = map(spreadsheet_safe_cell, (image, label))
            writer.writerow([*cells, target, f"{probability:.4f}", f"{error:.4f}", ""])


def read_label_corrections(path: str | Path) -> list[LabelCorrection]:
    """Return the corrections of a file of ``surelabel audit`` or ``surelabel serve``.

    The file is CSV in UTF-8, separated by commas, semicolons or tabs, with the columns ``path``,
    ``label`` and ``corrected``. A correction is 1 or 0 (also true, yes, positive, false, no,
    negative), or ``unknown``. Rows with an empty cell keep their target. If the file has the column
    ``time`` or ``event``, the last row of an image and label holds, undone rows are left out, and
    relative paths refer to the folder of the file.

    Args:
        path: Path of the CSV file.

    Raises:
        DataError: If a column is missing, or a line or a correction is invalid.
    """
    table = read_correction_rows(path)
    if not table.is_ordered:
        return [
            LabelCorrection(row.path, row.label, row.target)
            for row in table.rows
            if not row.is_sampling
        ]
    history = CorrectionHistory.of_rows(table.rows, table.path.absolute().parent)
    return [
        LabelCorrection(image, label, target)
        for image, targets in history.targets.items()
        for label, target in targets.items()
    ]


@overload
def correct_labels(labelled: LabelledImages, path: str | Path) -> LabelledImages: ...
@overload
def correct_labels(labelled: LabelledFeatures, path: str | Path) -> LabelledFeatures: ...
def correct_labels(
    labelled: LabelledImages | LabelledFeatures, path: str | Path
) -> LabelledImages | LabelledFeatures:
    """Return annotated images, vectors or scores with the corrections of a file.

    Args:
        labelled: Images, vectors or scores with labels. They are not changed.
        path: CSV file of ``surelabel audit``, whose column ``corrected`` was filled, or of
            ``surelabel serve``; see :func:`read_label_corrections`.

    Raises:
        DataError: If the file is invalid, if an image or a label of a correction is not in
            ``labelled``, or if two corrections of a target contradict each other.

    Example:
        >>> import tempfile
        >>> vectors = LabelledFeatures(np.eye(2), ["lion"], [[1.0], [0.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "corrections.csv"
        ...     _ = file.write_text("path,label,corrected\\nrow 1,lion,1\\n")
        ...     correct_labels(vectors, file).targets.tolist()
        [[1.0], [1.0]]
    """
    is_image = isinstance(labelled, LabelledImages)
    rows = _rows_by_key(labelled.paths, is_image=is_image)
    columns = {spreadsheet_safe_cell(str(name)): c for c, name in enumerate(labelled.names)}
    targets = np.where(labelled.known, labelled.targets, nan)
    corrected = dict[tuple[int, int], float]()
    for correction in read_label_corrections(path):
        column = columns.get(spreadsheet_safe_cell(correction.label))
        found = rows.get(_row_key(correction.path, is_image=is_image), ())
        if column is None or not found:
            what, value = (
                ("label", correction.label) if column is None else ("path", correction.path)
            )
            raise DataError(
                f"{path}: each {what} must be in the dataset; got {quote_of_file(value)}. Give the "
                "dataset that was corrected, or correct the row."
            )
        for row in found:
            earlier = corrected.setdefault((row, column), correction.target)
            if not np.array_equal(earlier, correction.target, equal_nan=True):
                raise DataError(
                    f"{path}: each label of an image must have one correction; got two different "
                    f"corrections of {quote_of_file(correction.label)} for "
                    f"{quote_of_file(correction.path)}. Remove one of the two rows."
                )
            targets[row, column] = correction.target
    if isinstance(labelled, LabelledScores):
        return labelled.with_labels(labelled.names, targets)
    if isinstance(labelled, LabelledFeatures):
        return replace(labelled, targets=targets, known=~np.isnan(targets))
    return replace(labelled, targets=targets, known=~np.isnan(targets))


def _rows_by_key(paths: Sequence[str], *, is_image: bool) -> dict[str, list[int]]:
    """Return the row numbers of each image."""
    rows = dict[str, list[int]]()
    for row, path in enumerate(paths):
        rows.setdefault(_row_key(path, is_image=is_image), []).append(row)
    return rows


def _row_key(path: str, *, is_image: bool) -> str:
    """Return the absolute path of an image, or the identifier of a row, as in a spreadsheet."""
    return spreadsheet_safe_cell(absolute_image_path(path) if is_image else path)
