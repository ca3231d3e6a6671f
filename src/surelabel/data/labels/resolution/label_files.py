"""Detect the annotation format of a file or folder, and read annotated images."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from surelabel.data.labels import (
    coco,
    corrections,
    csv,
    imagefolder,
    jsonl,
    parquet,
    voc,
    webdataset,
    xmp,
)
from surelabel.data.labels.resolution.arrow_tables import (
    ArrowStream,
    RowDataset,
    TableInMemory,
    label_table_in_memory,
)
from surelabel.data.labels.resolution.correction_rows import (
    REQUIRED_COLUMNS,
    is_correction_header,
    read_correction_header,
)
from surelabel.data.labels.resolution.image_resolution import unresolved_image_path
from surelabel.data.labels.resolution.label_tables import (
    label_entries_of_table,
    labels_of_table,
)
from surelabel.data.labels.resolution.table_columns import IMAGE_COLUMNS, MAIN_IMAGE_COLUMN
from surelabel.data.labels.resolution.table_options import (
    Separator,
    TableOptions,
    TargetReading,
)
from surelabel.data.text_lists import read_first_line
from surelabel.errors import DataError, InputError
from surelabel.file_readers import contains_url, parse_json
from surelabel.records import LabelledImages


class LabelFormat(Protocol):
    """Interface of the modules that read an annotation format."""

    def read(
        self,
        path: str | Path,
        *,
        images_root: str | Path | None = None,
        names: Sequence[str] | None = None,
    ) -> LabelledImages:
        """Read annotated images from a file or folder of the format."""


FORMATS: dict[str, LabelFormat] = {
    "csv": csv,
    "corrections": corrections,
    "jsonl": jsonl,
    "coco": coco,
    "voc": voc,
    "xmp": xmp,
    "imagefolder": imagefolder,
    "parquet": parquet,
    "webdataset": webdataset,
}
_TABLE_FORMATS: dict[str, Any] = {"csv": csv, "imagefolder": imagefolder, "parquet": parquet}
XMP_PREFIX = "xmp:"  # prefix of a folder whose XMP sidecars are read

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tar": "webdataset",
}
_PANDAS_READERS = {".csv.gz": "read_csv"}  # functions of pandas that read other tables
_LABEL_FILE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", *_PANDAS_READERS)


def has_label_file_suffix(path: str | Path) -> bool:
    """Return True if a path has the suffix of an annotation file, such as ``.csv``."""
    return str(path).lower().endswith(_LABEL_FILE_SUFFIXES)


def read_labels(
    source: str | Path | TableInMemory,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    image_column: str | None = None,
    ignore: Sequence[str] = (),
    separator: Separator | None = None,
    minus_one: TargetReading | None = None,
    zero: TargetReading | None = None,
    missing: TargetReading | None = None,
) -> LabelledImages:
    """Read annotated images from a file, a folder, a DataFrame or a dataset of Hugging Face.

    The columns and cells of a DataFrame or a dataset are read like the columns and cells of a CSV
    file. The options after ``names``, except ``missing``, apply to all tables. A column can also
    contain lists of labels, or classes (``ClassLabel``).

    Args:
        source: Path of a file or folder, or a table in memory. A file is CSV, JSON lines, COCO
            instances, Parquet or a tar shard of WebDataset; its suffix or first line determines the
            format. A folder contains VOC XML, tar shards, or images in the layout ``imagefolder``
            of Hugging Face. ``xmp:FOLDER`` selects the keywords in the XMP sidecars of images. A
            table is a DataFrame of pandas or polars, a table of Arrow, or a ``Dataset`` of Hugging
            Face ``datasets``.
        images_root: Folder to which image paths are relative. If None, the default folder of the
            format is used, or the working directory for a table in memory. The images that a
            dataset contains are written to this folder.
        names: Labels to return, in the order of the columns. If None, the labels of the source are
            returned.
        image_column: Column of the image paths. If None, the column is found by its name: ``path``,
            ``image`` or ``filename``.
        ignore: Columns without labels, such as ``split`` or ``width``.
        separator: Separator of the labels in one column of labels: ``comma``, ``semicolon``,
            ``pipe`` or ``space``. If None, the only one of ``,``, ``;`` and ``|`` in the column is
            used. A label that contains the separator is written in double quotes.
        minus_one: Meaning of the target -1, ``negative`` or ``unknown``. If None, a table with -1
            is refused.
        zero: Meaning of the target 0, ``negative`` or ``unknown``. If None, 0 is negative; but a
            table with -1 and 0 is refused if ``minus_one`` is ``negative``.
        missing: Meaning of a label that is not a keyword of an image with keywords in its XMP
            sidecar, ``negative`` or ``unknown``. If None, the label is negative.

    Raises:
        DataError: If the source has an unsupported format, is damaged or incomplete, contradicts
            itself, or refers to images that do not exist.
        InputError: If an option has an invalid value, names a column that does not exist, or is
            given for a file without a table; if a dataset contains images, and ``images_root`` is
            None; or if ``source`` is neither a path nor a table.
    """
    options = TableOptions(image_column, ignore, separator, minus_one, zero)
    if isinstance(source, str) and source.startswith(XMP_PREFIX):
        _check_no_table_options(options, source, "xmp")
        folder = source.removeprefix(XMP_PREFIX)
        return xmp.read(folder, images_root=images_root, names=names, missing=missing)
    if missing is not None:
        raise InputError(
            f"The option missing can be given only for XMP sidecars; got {missing!r} for {source}. "
            "Remove this option, or give xmp:FOLDER."
        )
    if isinstance(source, ArrowStream | RowDataset):
        table = label_table_in_memory(source, options, images_root=images_root)
        return labels_of_table(table, options, images_root=images_root, names=names)
    if not isinstance(source, str | Path):
        raise _label_source_error(source)
    if contains_url(str(source)):
        raise DataError(
            f"{source}: URLs are not downloaded. Download the file and its images, and give the "
            "path of the file."
        )
    path = Path(source)
    kind = _detect_label_file_format(path, options)
    if kind in _TABLE_FORMATS:
        read = _TABLE_FORMATS[kind].read
        labelled: LabelledImages = read(path, images_root=images_root, names=names, **vars(options))
        return labelled
    _check_no_table_options(options, path, kind)
    return FORMATS[kind].read(path, images_root=images_root, names=names)


def read_label_entries(
    source: str | Path | TableInMemory, *, images_root: str | Path | None = None, **options: Any
) -> LabelledImages:
    """Read annotations with their image names; images of a table need no files.

    Args:
        source: Annotations, as for :func:`read_labels`.
        images_root: Folder to which image paths are relative, as for :func:`read_labels`. Paths of
            images in this folder are returned relative to it.
        options: Other options of :func:`read_labels`.

    Returns:
        Annotated images, with the image names of a table as paths.

    Raises:
        DataError, InputError: For the reasons of :func:`read_labels`, except that the image files
            of a table need not exist.
    """
    table_options = TableOptions(**{k: v for k, v in options.items() if k != "missing"})
    if "missing" not in options:
        if isinstance(source, ArrowStream | RowDataset):
            table = label_table_in_memory(source, table_options, images_root=images_root)
            return label_entries_of_table(table, table_options)
        path = Path(str(source))
        is_file = not str(source).startswith(XMP_PREFIX) and path.is_file()
        kind = _detect_label_file_format(path, table_options) if is_file else ""
        if kind == "corrections":
            return corrections.read_entries(path, images_root=images_root)
        if kind == "csv":
            return label_entries_of_table(csv.read_csv_table(path, table_options), table_options)
        if kind == "parquet":
            table = parquet.read_parquet_table(path, table_options)
            return label_entries_of_table(table, table_options)
    labelled = read_labels(source, images_root=images_root, **options)
    folder = Path(str(source).removeprefix(XMP_PREFIX))
    root = Path(images_root) if images_root else folder if folder.is_dir() else folder.parent
    names = [unresolved_image_path(path, root) for path in labelled.paths]
    return replace(labelled, paths=names)


def _check_no_table_options(options: TableOptions, source: str | Path, kind: str) -> None:
    """Check that no option for tables is given for a source in the format ``kind``.

    Raises:
        InputError: If an option is given.
    """
    if options.given:
        raise InputError(
            f"{', '.join(options.given)} can be given only for tables, such as CSV files and "
            f"DataFrames; got {source} in the format {kind}. Remove {', '.join(options.given)}."
        )


def _label_source_error(source: Any) -> InputError:
    kind = type(source).__name__
    remedy = "Give a file, a DataFrame or a Dataset."
    if kind in ("DatasetDict", "IterableDatasetDict"):
        remedy = f"Choose one split: {' or '.join(f'dataset[{split!r}]' for split in source)}."
    elif kind == "IterableDataset":
        remedy = "Load the dataset without streaming."
    return InputError(f"Labels must be read from a path or a table; got {kind}. {remedy}")


def _detect_label_file_format(path: Path, options: TableOptions) -> str:
    if path.is_dir():
        return detect_label_folder_format(path) or "voc"
    if not path.exists():
        raise DataError(f"{path} does not exist. Give the path of a file or folder with labels.")
    if path.suffix.lower() in _SUFFIXES:
        kind = _SUFFIXES[path.suffix.lower()]
        return "corrections" if kind == "csv" and _has_corrections(path, options) else kind
    _check_not_table_of_pandas(path)
    first_line = read_first_line(path)
    if first_line.startswith("{"):
        return "jsonl" if _is_jsonl_label_file(first_line) else "coco"
    if _is_table_header(first_line, options):
        return "corrections" if _has_corrections(path, options) else "csv"
    raise DataError(
        f"{path} must be a CSV file (path,dog,cat or path,labels), a JSON lines or COCO file, or a "
        f"folder of VOC XML files; got {first_line[:40]!r}. Convert the file to one of these "
        "formats; a CSV file needs the suffix .csv."
    )


def detect_label_folder_format(folder: Path) -> str | None:
    """Return the format of a folder with labels, or None if the folder has none.

    A folder with several subfolders has the format ``imagefolder``, although it may contain images
    without labels. The caller decides how to use such a folder.

    Args:
        folder: Path of a folder.
    """
    if (folder / "Annotations").is_dir() or next(folder.glob("*.xml"), None) is not None:
        return "voc"
    if webdataset.tar_shards_of_folder(folder):
        return "webdataset"
    return "imagefolder" if imagefolder.is_image_folder(folder) else None


def _has_corrections(path: Path, options: TableOptions) -> bool:
    """Return True if a table has the columns of a file of corrections, and none is ignored."""
    if options.image_column is not None or not set(REQUIRED_COLUMNS).isdisjoint(options.ignore):
        return False
    with suppress(DataError):  # reading the table raises the error
        return is_correction_header(read_correction_header(path)[1])
    return False


def _check_not_table_of_pandas(path: Path) -> None:
    for suffix, function in _PANDAS_READERS.items():
        if path.name.lower().endswith(suffix):
            raise DataError(
                f"{path} must be a CSV, JSON lines or COCO file; got a {suffix} file. Convert the "
                "file to CSV, or read it with pandas: "
                f"read_labels(pandas.{function}({str(path)!r}), images_root=FOLDER)."
            )


def _is_table_header(text: str, options: TableOptions) -> bool:
    """Return True if the first cell of a line is a column of image paths."""
    first = re.split(r"[,;\t]", text)[0].strip(' "')
    return first != text and (
        first.casefold() in IMAGE_COLUMNS | {MAIN_IMAGE_COLUMN} or first == options.image_column
    )


def _is_jsonl_label_file(text: str) -> bool:
    try:
        return "path" in parse_json(text)
    except ValueError:
        return False
