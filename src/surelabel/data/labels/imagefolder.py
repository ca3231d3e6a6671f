"""Read image folders of Hugging Face ``datasets``: a metadata file, or one subfolder per class."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from surelabel.data.image_sources import find_images
from surelabel.data.labels import csv, parquet
from surelabel.data.labels.resolution.arrow_tables import label_table_in_memory
from surelabel.data.labels.resolution.image_resolution import (
    resolve_label_columns,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.label_tables import labels_of_table
from surelabel.data.labels.resolution.table_options import (
    Separator,
    TableOptions,
    TargetReading,
)
from surelabel.errors import DataError, InputError
from surelabel.file_readers import check_regular_file
from surelabel.records import LabelledImages

METADATA_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
FILE_COLUMN = "file_name"

_SPLITS = frozenset({"train", "training", "validation", "valid", "val", "dev", "test", "testing"})


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    image_column: str | None = None,
    ignore: Sequence[str] = (),
    separator: Separator | None = None,
    minus_one: TargetReading | None = None,
    zero: TargetReading | None = None,
) -> LabelledImages:
    """Read annotated images from a folder in the layout of Hugging Face ``imagefolder``.

    - With ``metadata.csv``, ``metadata.jsonl`` or ``metadata.parquet`` in the folder, the column
      ``file_name`` has the paths of images in the folder. The other columns are read like the
      columns of a CSV file.
    - Without such a file, the label of an image is the name of its folder, as in ``cat/1.jpg``.
      This label is positive, and all other labels are negative.

    Args:
        path: Path of the folder of one split, such as ``photos/train``.
        images_root: Folder to which ``file_name`` is relative. If None, ``path`` is used.
        names: Labels to return, in the order of the columns. If None, the labels of the folder are
            returned.
        image_column: Column of the image paths. If None, the column ``file_name`` is used.
        ignore: Columns of the metadata without labels.
        separator: Separator of the labels in one column of labels.
        minus_one: Meaning of the target -1, ``negative`` or ``unknown``.
        zero: Meaning of the target 0, ``negative`` or ``unknown``.

    Raises:
        DataError: If there are several metadata files, if an image is outside of the class folders,
            if the folders are splits, or for the reasons of a CSV file.
        InputError: If an option has an invalid value, or is given without a metadata file.
    """
    folder = Path(path)
    root = folder if images_root is None else images_root
    options = TableOptions(image_column or FILE_COLUMN, ignore, separator, minus_one, zero)
    files = [folder / name for name in METADATA_FILES if (folder / name).exists()]
    if len(files) > 1:
        raise DataError(
            f"{path} must contain only one metadata file; got "
            f"{' and '.join(f.name for f in files)}. Remove all metadata files except one."
        )
    if not files:
        given = TableOptions(image_column, ignore, separator, minus_one, zero).given
        if given or images_root is not None:
            names_of_options = ", ".join([*given, *(["images_root"] if images_root else [])])
            raise InputError(
                f"{names_of_options} can be given only for a folder with a metadata file; got "
                f"{path} without a metadata file. Remove {names_of_options}."
            )
        return _read_class_folders(folder, names)
    if files[0].suffix == ".jsonl":
        table = _read_json_table(files[0])
        entries = label_table_in_memory(table, options, images_root=root, name=str(files[0]))
        return labels_of_table(entries, options, images_root=root, names=names)
    if files[0].suffix == ".csv":
        return csv.read(files[0], images_root=root, names=names, **vars(options))
    return parquet.read(files[0], images_root=root, names=names, **vars(options))


def is_image_folder(folder: Path) -> bool:
    """Return True if a folder has a metadata file, or at least two subfolders."""
    return any((folder / name).exists() for name in METADATA_FILES) or (
        sum(entry.is_dir() and not entry.name.startswith(".") for entry in folder.iterdir()) > 1
    )


def _read_class_folders(folder: Path, names: Sequence[str] | None) -> LabelledImages:
    images = [os.path.relpath(image, folder) for image in find_images([folder])]
    if outside := [image for image in images if not os.path.dirname(image)]:
        raise DataError(
            f"{folder} must contain one folder per class, or metadata.csv with the column "
            f"{FILE_COLUMN}; got {outside[0]!r} outside a class folder. Move this image to the "
            "folder of its class."
        )
    labels = [os.path.basename(os.path.dirname(image)) for image in images]
    for splits in ({image.split(os.sep)[0] for image in images}, set(labels)):
        if splits <= _SPLITS:
            raise DataError(
                f"{folder} must be the folder of one split; got the splits "
                f"{', '.join(sorted(splits))}. Give the folder {min(splits)} with one folder per "
                "class."
            )
    columns = resolve_label_columns(folder, set(labels), names)
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(images), len(columns)))
    targets[np.arange(len(images)), [column_of[label] for label in labels]] = 1.0
    return resolve_labelled_images(
        folder,
        images,
        columns,
        targets,
        images_root=folder,
        names=names,
        reading="the label of an image is the name of its folder",
    )


def _read_json_table(file: Path) -> pa.Table:
    check_regular_file(file)
    try:
        return pajson.read_json(str(file))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200].rstrip(".")
        raise DataError(
            f"{file} must be a JSON lines file; got: {reason}. Correct the file."
        ) from error
