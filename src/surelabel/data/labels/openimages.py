"""Read Open Images: CSV files of image-level labels and of bounding boxes."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.labels.resolution.class_descriptions import (
    MID_START,
    find_class_descriptions,
    read_class_descriptions,
)
from surelabel.data.labels.resolution.image_resolution import (
    check_label_resolution,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.label_hierarchy import read_label_hierarchy
from surelabel.data.labels.resolution.openimages_cells import (
    CellKeys,
    OpenImagesCells,
    collect_openimages_cells,
    expand_openimages_cells,
    place_of_openimages_label,
)
from surelabel.data.labels.resolution.openimages_rows import (
    UNKNOWN,
    OpenImagesRows,
    openimages_columns,
    read_openimages_rows,
)
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelledImages

_MAX_TARGETS = 2**31  # targets of 16 GiB


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    machine_labels: float | None = None,
    hierarchy: str | Path | None = None,
    class_descriptions: str | Path | None = None,
) -> LabelledImages:
    """Read annotated images from the CSV files of Open Images V2 to V7.

    The columns of image-level labels are ``ImageID,Source,LabelName,Confidence``; a file with the
    columns ``ImageID``, ``LabelName`` and ``XMin`` contains bounding boxes.

    - A verified label is positive if its confidence is 1, and negative if its confidence is 0. Its
      source is ``verification``, ``crowdsource-verification`` or ``human``.
    - A label with a box is positive, whatever the source and the attributes of the box are.
    - A label of the source ``machine`` is positive if its confidence is at least
      ``machine_labels``, and otherwise unknown. If the label is verified in the image, the machine
      label is ignored.
    - All other labels are unknown. A label without a known target has no column. An image with only
      unknown targets is kept.

    With ``hierarchy``, a positive label makes its ancestors positive, and a negative label makes
    its descendants negative; parts are not expanded. The root, ``/m/0bl9f`` in the official file,
    is only used if it has a description or occurs in the rows. Labels were verified one by one, so
    that a label can be positive although its ancestor is negative. The targets of such labels, and
    of the labels between them, are unknown; ``reading`` states their number. In contrast, rows of
    one image and one label that contradict each other are refused.

    The label of a machine identifier (MID), such as ``/m/0bt9lr``, is its name in the class
    descriptions. Several MIDs with one name are one label: it is positive if any of the MIDs is
    positive, negative if all of them are negative, and otherwise unknown. Only MIDs with a known
    target in any image are counted. A ``LabelName`` that does not start with ``/`` and has no
    description is used as the label.

    Args:
        path: Path of a CSV file, or of a folder; all CSV files in a folder that contain labels or
            boxes are read together.
        images_root: Folder that contains the image ``ImageID.jpg`` of each ``ImageID``; images
            with another suffix are also found. If None, the folder of the CSV files is used.
        names: Labels to return, in the order of the columns. If None, the sorted labels are
            returned. Labels that only the hierarchy adds are omitted if they are not in ``names``.
        machine_labels: Smallest confidence in [0, 1] of a machine label that is positive. If None,
            all machine labels are unknown.
        hierarchy: Path of the JSON file of the hierarchy, such as
            ``bbox_labels_600_hierarchy.json``. If None, labels are not expanded.
        class_descriptions: Path of the CSV file with the name of each MID. If None, the file
            in the folder of the CSV files is used: ``class-descriptions.csv``,
            ``oidv7-class-descriptions.csv`` or ``class-descriptions-boxable.csv``.

    Raises:
        InputError: If ``machine_labels`` is not in [0, 1].
        DataError: If a file is damaged, if rows contradict each other, if a MID has no
            description, or if there is no known target. Also if an image does not exist, or if a
            label of the rows is not in ``names``.
    """
    path = Path(path)
    if machine_labels is not None and not 0 <= machine_labels <= 1:
        raise InputError(f"machine_labels must be in [0, 1]; got {machine_labels!r}.")
    folder = path if path.is_dir() else path.parent
    files = openimages_files(path) if path.is_dir() else [path]
    if not files or openimages_columns(files[0]) is None:
        raise DataError(
            f"{path} must be a CSV file of Open Images, or a folder of such files, with the "
            "columns ImageID,Source,LabelName,Confidence or those of bounding boxes; got none. "
            "Give another path."
        )
    tables = [read_openimages_rows(file, machine_labels) for file in files]
    tree = None if hierarchy is None else read_label_hierarchy(Path(hierarchy))
    cells = collect_openimages_cells(tables, [] if tree is None else tree.ancestors)
    row_labels = cells.known_labels
    if not row_labels:
        got, remedy = "no row", "Give another file."
        if cells.images:
            got = "only machine labels that are unknown"
            remedy = (
                "Give another file, or add --machine-labels MIN (in Python machine_labels=MIN) "
                "with a confidence that machine labels reach."
            )
        raise DataError(f"{path} must contain a verified label or a box; got {got}. {remedy}")
    contradictions = np.array([], np.int64)
    if tree is not None:
        cells, contradictions = expand_openimages_cells(cells, tree.ancestors)
    file = Path(class_descriptions) if class_descriptions else find_class_descriptions(folder)
    descriptions = read_class_descriptions(file) if file else {}
    added_labels = set(cells.known_labels) - set(row_labels)
    if tree is not None and tree.root not in descriptions:
        added_labels.discard(tree.root)
    name_of = {}
    for label in (*row_labels, *sorted(added_labels)):
        if label.startswith(MID_START) and label not in descriptions:
            place = place_of_openimages_label(tables, label) or str(hierarchy)
            raise _missing_description_error(place, label, file or folder)
        name_of[label] = descriptions.get(label, label)
    columns = sorted(set(name_of.values()))
    if names is not None:
        check_label_resolution(path, {name_of[label] for label in row_labels}, names)
        columns = list(names)
    return resolve_labelled_images(
        path,
        cells.images,
        columns,
        _targets_of_cells(path, cells, name_of, columns),
        images_root=folder if images_root is None else images_root,
        names=names,
        reading="; ".join(
            [
                *_describe_openimages_rows(tables, machine_labels),
                *_describe_contradictions(cells, contradictions, descriptions),
                *_describe_merged_names(name_of),
            ]
        ),
    )


def is_openimages_file(path: str | Path) -> bool:
    """Return True if the header of a file has the columns of labels or boxes of Open Images.

    Raises:
        DataError: If the file cannot be read, or if its first line is not UTF-8 text.
    """
    return openimages_columns(Path(path)) is not None


def openimages_files(folder: str | Path) -> list[Path]:
    """Return the sorted CSV files in a folder that contain labels or boxes of Open Images."""
    files = []
    for file in sorted(Path(folder).glob("*.csv")):
        with suppress(DataError):  # a file that cannot be read has another format
            files += [file] if is_openimages_file(file) else []
    return files


def _missing_description_error(place: str, label: str, source: Path) -> DataError:
    """Return the error for a MID without a name.

    Args:
        place: Place of the MID.
        label: The MID.
        source: Path of the class descriptions, or of the folder that does not contain them.
    """
    if source.is_dir():
        return DataError(
            f"{place}: the MID {quote_of_file(label)} must have a name; got no class descriptions "
            f"in {source}. Copy class-descriptions.csv into this folder, or give "
            "--class-descriptions FILE (in Python class_descriptions=FILE)."
        )
    return DataError(
        f"{place}: the MID {quote_of_file(label)} must have a name in {source}; got none. Add the "
        f"line {label},NAME to this file, or give the file of another version."
    )


def _targets_of_cells(
    path: Path, cells: OpenImagesCells, name_of: dict[str, str], columns: Sequence[str]
) -> Array:
    """Return the targets of the images, ``(n, c)``.

    Args:
        path: Path of the file or folder, for messages.
        cells: Known targets.
        name_of: Name of each label that is used.
        columns: Names of the columns; other names are omitted.

    Raises:
        DataError: If the array of the targets would be too large.
    """
    n_images, n_columns, n_labels = len(cells.images), len(columns), len(cells.labels)
    if n_images * n_columns > _MAX_TARGETS:
        raise DataError(
            f"{path} must have at most {_MAX_TARGETS:,} targets; got "
            f"{format_count(n_images, 'image')} with {format_count(n_columns, 'label')}. Keep only "
            "the rows of the images and labels that are used."
        )
    column_of_name = {name: column for column, name in enumerate(columns)}
    column_of = np.full(n_labels, -1)
    for code, label in enumerate(cells.labels):
        column_of[code] = column_of_name.get(name_of.get(label, ""), -1)
    n_labels_of = np.bincount(column_of[column_of >= 0], minlength=n_columns)
    targets = np.full((n_images, n_columns), np.nan)
    known = ((cells.negative, 0.0), (cells.machine, 1.0), (cells.positive, 1.0))
    for keys, value in known:
        images, labels = np.divmod(keys, n_labels)
        is_used = column_of[labels] >= 0
        rows, numbers = images[is_used], column_of[labels[is_used]]
        if value == 0 and n_labels_of.max(initial=0) > 1:
            places, counts = np.unique(rows * n_columns + numbers, return_counts=True)
            rows, numbers = np.divmod(places, n_columns)
            is_negative = counts == n_labels_of[numbers]
            rows, numbers = rows[is_negative], numbers[is_negative]
        targets[rows, numbers] = value
    return targets


def _describe_openimages_rows(
    tables: Sequence[OpenImagesRows], machine_labels: float | None
) -> list[str]:
    """Return a description of the files, and of the machine labels that are not used."""
    n_boxes = sum(table.is_box for table in tables)
    n_files = {"labels": len(tables) - n_boxes, "boxes": n_boxes}
    kinds = [f"{format_count(n, 'file')} of {kind}" for kind, n in n_files.items() if n]
    parts = [f"Open Images, {' and '.join(kinds)}"]
    n_unknown = sum(int((table.kinds == UNKNOWN).sum()) for table in tables)
    if n_unknown:
        limit = "" if machine_labels is None else f" with a confidence below {machine_labels:g}"
        parts.append(f"{format_count(n_unknown, 'machine label')}{limit} not used")
    return parts


def _describe_contradictions(
    cells: OpenImagesCells, contradictions: CellKeys, descriptions: dict[str, str]
) -> list[str]:
    """Return a description of the targets that are contradictory because of the hierarchy."""
    if not len(contradictions):
        return []
    image, column = divmod(int(contradictions[0]), len(cells.labels))
    label = descriptions.get(cells.labels[column], cells.labels[column])
    count = format_count(len(contradictions), "contradictory target")
    return [f"{count} of the hierarchy unknown, such as {label} of {cells.images[image]}"]


def _describe_merged_names(name_of: dict[str, str]) -> list[str]:
    """Return a description of the names that several MIDs have."""
    n_merged = sum(count > 1 for count in Counter(name_of.values()).values())
    return [f"{format_count(n_merged, 'name')} of several MIDs merged"] if n_merged else []
