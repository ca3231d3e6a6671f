"""Read CSV files of targets: a header, an image in each row, and one column for each label."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.csv_rows import open_csv_rows
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.mapped_arrays import mapped_zeros

_TARGETS = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0}
_RESTORE = "Restore the official file."


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Images and targets of a CSV file.

    Attributes:
        place_of_names: Place of the header in messages.
        names: Labels of the header, length c.
        images: Names of the images, length n.
        targets: Targets, ``(n, c)``.
    """

    place_of_names: str
    names: Sequence[str]
    images: Sequence[str]
    targets: Array


def read_target_table(file: Path) -> TargetTable:
    """Return the images and targets of a CSV file whose first column contains the images.

    Raises:
        DataError: If the file cannot be read, if it has no image, if a row has another number of
            cells than the header, if a target is neither 0 nor 1, or if an image path leaves the
            folder or occurs twice.
    """
    names, images, values = list[str](), list[str](), list[list[float]]()
    lines: dict[str, int] = {}
    with open_csv_rows(file) as rows:
        for line, cells in rows:
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = [cell.strip() for cell in cells[1:]]
                _check_header(file, line, names)
                continue
            image = cells[0].strip()
            check_relative_image_path(f"{file}, line {line}", image)
            if lines.setdefault(image, line) != line:
                raise DataError(
                    f"{file}, line {line}: each image must occur once; got {quote_of_file(image)}, "
                    f"which is also on line {lines[image]}. {_RESTORE}"
                )
            images.append(image)
            values.append(_read_targets(f"{file}, line {line}", names, cells[1:]))
    if not images:
        raise DataError(f"{file} must contain a header and an image; got no image. {_RESTORE}")
    targets: Array = mapped_zeros((len(images), len(names)), np.float64)
    targets[:] = values
    return TargetTable(f"{file}, line 1", names, images, targets)


def _check_header(file: Path, line: int, names: Sequence[str]) -> None:
    if not names or not all(names) or all(name in _TARGETS for name in names):
        raise DataError(
            f"{file}, line {line}: expected a header with the labels; got "
            f"{quote_of_file(','.join(names))}. {_RESTORE}"
        )


def _read_targets(place: str, names: Sequence[str], cells: Sequence[str]) -> list[float]:
    """Return the targets of an image.

    Raises:
        DataError: If the number of cells differs, or if a cell is neither 0 nor 1.
    """
    if len(cells) != len(names):
        raise DataError(
            f"{place}: expected {format_count(len(names), 'target')}; got {len(cells)}. {_RESTORE}"
        )
    texts = [cell.strip() for cell in cells]
    for name, text in zip(names, texts, strict=True):
        if text not in _TARGETS:
            raise DataError(
                f"{place}, column {quote_of_file(name)}: the target must be 0 or 1; got "
                f"{quote_of_file(text)}. {_RESTORE}"
            )
    return [_TARGETS[text] for text in texts]
