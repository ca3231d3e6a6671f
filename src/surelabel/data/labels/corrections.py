"""Read corrections of single targets: a CSV file with one row per image and label."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.labels.resolution.correction_history import CorrectionHistory, target_array
from surelabel.data.labels.resolution.correction_rows import CorrectionTable, read_correction_rows
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import RANDOM_ROW, LabelledImages, RowSelection


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read the corrected targets of a file of ``surelabel serve`` or ``surelabel audit``.

    The file is CSV in UTF-8 with the columns ``path``, ``label`` and ``corrected``. 1 is a positive
    target, and 0 is a negative target. All other targets are unknown: ``unknown``, empty cells, and
    labels of an image without a row. If the file has the column ``time`` or ``event``, the last row
    of an image and label holds, and undone events have no effect.

    The columns ``chosen_by`` and ``inclusion_probability``, if there are any, state how each image
    was chosen. Rows with an empty label are images of the random sample. All images of the sample
    have the inclusion probability of the last such row. Of an image of the sample, calibration and
    evaluation use only rows with ``random``; see :class:`RowSelection`.

    Args:
        path: Path of the CSV file.
        images_root: Folder to which image paths are relative. If None, the folder of the CSV file
            is used.
        names: Labels to return, in the order of the columns. If None, the labels are returned in
            the order of their first rows.

    Raises:
        DataError: If a line is invalid, if there are no corrections, if rows without an order
            contradict each other, if an image does not exist, or if a label is not in ``names``.
    """
    entries = read_entries(path, images_root=images_root)
    return resolve_labelled_images(
        Path(path),
        entries.paths,
        entries.names,
        np.where(entries.known, entries.targets, np.nan),
        images_root=images_root,
        names=names,
        reading=entries.reading,
        row_selection=entries.row_selection,
    )


def read_entries(path: str | Path, *, images_root: str | Path | None = None) -> LabelledImages:
    """Return the corrected targets with absolute paths of images, which need not exist.

    A warning states the size of an event at the end of the file that was not written completely.

    Args:
        path: Path of the CSV file.
        images_root: Folder to which image paths are relative, as for :func:`read`.

    Raises:
        DataError: If the file is invalid, or contains no corrections.
    """
    table = read_correction_rows(path)
    folder = Path(images_root if images_root is not None else table.path.parent)
    _warn_of_incomplete_event(table)
    if not table.is_ordered:
        _check_no_contradictions(table)
    history = CorrectionHistory.of_rows(table.rows, folder)
    if not history.names:
        raise DataError(
            f"{path} must contain corrections; got no row with a label and 1, 0 or unknown in the "
            "column corrected. Fill this column."
        )
    paths = list(history.chosen_by)
    return LabelledImages(
        paths,
        history.names,
        target_array(history.targets, paths, history.names),
        reading=_describe_reading(table, history),
        row_selection=_row_selection(history, paths) if table.has_selection else None,
    )


def _row_selection(history: CorrectionHistory, paths: Sequence[str]) -> RowSelection:
    """Return how each image was chosen, with the targets of the random sample."""
    return RowSelection(
        [RANDOM_ROW if path in history.sampled else history.chosen_by[path] for path in paths],
        np.array([history.sampled.get(path, math.nan) for path in paths]),
        history.names,
        target_array(history.sample_targets, paths, history.names),
    )


def _check_no_contradictions(table: CorrectionTable) -> None:
    """Check that no image has two different corrections of a label.

    Raises:
        DataError: If two rows contradict each other.
    """
    earlier = dict[tuple[str, str], tuple[float, int]]()
    for row in table.rows:
        target, line = earlier.setdefault((row.path, row.label), (row.target, row.line))
        if not np.array_equal(target, row.target, equal_nan=True):
            raise DataError(
                f"{table.path}: each label of an image must have one correction; got two different "
                f"corrections of {quote_of_file(row.label)} for {quote_of_file(row.path)} in lines "
                f"{line} and {row.line}. Remove one of the two rows."
            )


def _warn_of_incomplete_event(table: CorrectionTable) -> None:
    n_more = table.path.stat().st_size - table.n_bytes
    if n_more > 0:
        warnings.warn(
            f"{table.path} ends with {format_count(n_more, 'byte')} of a correction that was not "
            "written completely; these bytes are left out.",
            stacklevel=4,
        )


def _describe_reading(table: CorrectionTable, history: CorrectionHistory) -> str:
    """Return how the file was read, without a full stop."""
    parts = ["one row per corrected target"]
    if table.is_ordered:
        parts.append("the last row of an image and label holds")
    if history.undone:
        parts.append(f"{format_count(len(history.undone), 'event')} undone")
    if table.has_selection:
        parts.append("selection of the images in 'chosen_by'")
    return "; ".join(parts)
