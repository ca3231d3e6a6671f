"""Detect the annotation format of a file or folder, and read annotated images."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NoReturn, Protocol

from surelabel.data.labels import (
    arff,
    coco,
    corrections,
    csv,
    cvat,
    fiftyone,
    imagefolder,
    jsonl,
    label_studio,
    lvis,
    multihot,
    nuswide,
    openimages,
    parquet,
    voc,
    webdataset,
    xmp,
    yolo,
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
from surelabel.file_readers import (
    contains_url,
    open_regular_file,
    parse_json,
    quote_of_file,
    read_json,
)
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
        """Read annotated images; further arguments are options of :func:`read_labels`."""


FORMATS: dict[str, LabelFormat] = {
    "csv": csv,
    "corrections": corrections,
    "jsonl": jsonl,
    "parquet": parquet,
    "multihot": multihot,
    "arff": arff,
    "coco": coco,
    "lvis": lvis,
    "openimages": openimages,
    "nuswide": nuswide,
    "voc": voc,
    "yolo": yolo,
    "label_studio": label_studio,
    "cvat": cvat,
    "fiftyone": fiftyone,
    "xmp": xmp,
    "imagefolder": imagefolder,
    "webdataset": webdataset,
}
PRE_ANNOTATION_WRITERS: dict[str, Callable[..., None]] = {
    "label-studio": label_studio.write_predictions,
    "cvat": cvat.write_predictions,
    "fiftyone": fiftyone.write_predictions,
}
XMP_PREFIX = "xmp:"  # prefix of a folder whose XMP sidecars are read

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tar": "webdataset",
    ".arff": "arff",
    ".npy": "multihot",
    ".npz": "multihot",
    ".yaml": "yolo",
    ".yml": "yolo",
}
_COCO_KEY = re.compile(rb'\s*\{.*"(images|annotations|categories)"\s*:\s*\[', re.DOTALL)
_COCO_KEYS = frozenset({"images", "annotations", "categories"})
_HEAD_BYTES = 2**16
_PANDAS_READERS = {".csv.gz": "read_csv"}  # functions of pandas that read other tables
_LABEL_FILE_SUFFIXES = (
    *(".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".arff", ".npy", ".npz", ".yaml", ".yml"),
    *_PANDAS_READERS,
)


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
    split: str | None = None,
    label_field: str | None = None,
    label_file: str | Path | None = None,
    with_predictions: bool | None = None,
    machine_labels: float | None = None,
    hierarchy: str | Path | None = None,
    class_descriptions: str | Path | None = None,
) -> LabelledImages:
    """Read annotated images from a file, a folder, a DataFrame or a dataset of Hugging Face.

    The columns and cells of a DataFrame or a dataset are read like the columns and cells of a CSV
    file. A column can also contain lists of labels, or classes (``ClassLabel``). Each option after
    ``names`` applies only to the formats whose description mentions it.

    Args:
        source: Path of a file or folder, or a table in memory. The name or the content determines
            the format, a key of ``FORMATS``. ``xmp:FOLDER`` selects the keywords in the XMP
            sidecars of images. A table is a DataFrame of pandas or polars, a table of Arrow, or a
            ``Dataset`` of Hugging Face ``datasets``.
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
        minus_one: Meaning of the target -1 in a table or a multi-hot array, ``negative`` or
            ``unknown``. If None, a source with -1 is refused.
        zero: Meaning of the target 0 in a table or a multi-hot array, ``negative`` or ``unknown``.
            If None, 0 is negative; but a source with -1 and 0 is refused if ``minus_one`` is
            ``negative``.
        missing: Meaning of missing annotations, ``negative`` or ``unknown``: labels that are not
            keywords in an XMP sidecar, tags that an image of NUS-WIDE does not have, the missing
            ``.txt`` file of an image of YOLO, and images of CVAT or FiftyOne without labels. If
            None, the default of the format is used.
        split: Split of ``data.yaml`` of YOLO to read.
        label_field: Field of FiftyOne, or tag Choices of Label Studio, that contains the labels.
        label_file: XML file of Mulan with the labels of an ARFF file.
        with_predictions: Whether the predictions of Label Studio are read for tasks without a
            finished annotation. If None, they are not read.
        machine_labels: Lowest confidence in [0, 1] at which machine labels of Open Images are
            positive. If None, all machine labels are unknown.
        hierarchy: JSON file with the hierarchy of Open Images. Positive targets are extended to
            ancestors, and negative targets to descendants.
        class_descriptions: CSV file with the names of the labels of Open Images. If None, the file
            ``class-descriptions.csv`` in the folder is used.

    Raises:
        DataError: If the source has an unsupported format, is damaged or incomplete, contradicts
            itself, or refers to images that do not exist.
        InputError: If an option has an invalid value, names a column that does not exist, or is
            given for a format without this option; if a dataset contains images, and
            ``images_root`` is None; or if ``source`` is neither a path nor a table.
    """
    options = TableOptions(image_column, ignore, separator, minus_one, zero)
    other_options = {
        "missing": missing,
        "split": split,
        "label_field": label_field,
        "label_file": label_file,
        "with_predictions": with_predictions,
        "machine_labels": machine_labels,
        "hierarchy": hierarchy,
        "class_descriptions": class_descriptions,
    }
    given = {name: value for name, value in other_options.items() if value is not None}
    if isinstance(source, ArrowStream | RowDataset):
        _check_format_options(given, "a table in memory", "csv")
        table = label_table_in_memory(source, options, images_root=images_root)
        return labels_of_table(table, options, images_root=images_root, names=names)
    if not isinstance(source, str | Path):
        raise _label_source_error(source)
    if contains_url(str(source)):
        raise DataError(
            f"{source}: URLs are not downloaded. Download the file and its images, and give the "
            "path of the file."
        )
    if isinstance(source, str) and source.startswith(XMP_PREFIX):
        path, kind = Path(source.removeprefix(XMP_PREFIX)), "xmp"
    else:
        path = Path(source)
        kind = _detect_label_file_format(path, options)
    given |= {name: getattr(options, name) for name in options.given}
    _check_format_options(given, source, kind)
    read: Callable[..., LabelledImages] = FORMATS[kind].read
    return read(path, images_root=images_root, names=names, **given)


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
    if options.keys() <= set(TableOptions.__dataclass_fields__):
        table_options = TableOptions(**options)
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


def _check_format_options(given: Mapping[str, Any], source: str | Path, kind: str) -> None:
    """Check that the reader of a format has all given options.

    Raises:
        InputError: If an option is given that the format does not have.
    """
    for name in given:
        formats = [key for key, module in FORMATS.items() if name in _options_of_format(module)]
        if kind not in formats:
            raise InputError(
                f"{name} can be given only for {', '.join(formats)}; got {source} in the format "
                f"{kind}. Remove this option."
            )


def _options_of_format(module: LabelFormat) -> Mapping[str, Parameter]:
    return signature(module.read).parameters


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
        return detect_label_folder_format(path) or _refuse_folder_without_labels(path)
    if not path.exists():
        raise DataError(f"{path} does not exist. Give the path of a file or folder with labels.")
    if nuswide.is_nuswide_path(path):
        return "nuswide"
    if kind := _SUFFIXES.get(path.suffix.lower()):
        return _detect_csv_format(path, options) if kind == "csv" else kind
    _check_not_table_of_pandas(path)
    first_line = read_first_line(path)
    if first_line.startswith(("{", "[")):
        return "jsonl" if _is_jsonl_label_file(first_line) else _detect_json_format(path)
    if _is_table_header(first_line, options):
        return _detect_csv_format(path, options)
    if first_line.startswith("<") and cvat.is_cvat_file(path):
        return "cvat"
    raise DataError(
        f"{path} must be a CSV file (path,dog,cat or path,labels), a JSON lines or COCO file, a "
        f"folder of VOC XML files, or a file of another format; got {first_line[:40]!r}. Convert "
        "the file to one of the formats that `surelabel show format` lists; a CSV file needs the "
        "suffix .csv."
    )


def _detect_csv_format(path: Path, options: TableOptions) -> str:
    if _has_corrections(path, options):
        return "corrections"
    return "openimages" if openimages.is_openimages_file(path) else "csv"


def _detect_json_format(path: Path) -> str:
    if lvis.is_lvis_file(path):
        return "lvis"
    with open_regular_file(path) as stream:
        if _COCO_KEY.match(stream.read(_HEAD_BYTES)):
            return "coco"  # without parsing the file twice, which can be large
    content = read_json(path, kind="a file of annotations in JSON", remedy="Correct the file.")
    if label_studio.is_label_studio_content(content):
        return "label_studio"
    if fiftyone.is_fiftyone_content(content):
        return "fiftyone"
    if isinstance(content, dict) and not _COCO_KEYS.isdisjoint(content):
        return "coco"
    raise DataError(
        f"{path} must be a JSON file of COCO, LVIS, Label Studio (format JSON, not JSON-MIN) or "
        f"FiftyOne; got {quote_of_file(content)}. Export the dataset again, or give another file."
    )


def _refuse_folder_without_labels(path: Path) -> NoReturn:
    raise DataError(
        f"{path} must be a folder with labels, such as data.yaml of YOLO, XML files of VOC or one "
        "subfolder per label; got a folder without labels. Give a label file or a folder in one of "
        "the formats that `surelabel show format` lists."
    )


def detect_label_folder_format(folder: Path) -> str | None:
    """Return the format of a folder with labels, or None if the folder has none.

    A folder with several subfolders has the format ``imagefolder``, although it may contain images
    without labels. The caller decides how to use such a folder.

    Args:
        folder: Path of a folder.
    """
    tests: dict[str, Callable[[Path], object]] = {
        "yolo": yolo.is_yolo_folder,
        "nuswide": nuswide.is_nuswide_path,
        "openimages": openimages.openimages_files,
        "cvat": cvat.is_cvat_folder,
        "fiftyone": fiftyone.is_fiftyone_folder,
        "voc": voc.is_voc_folder,
        "webdataset": webdataset.tar_shards_of_folder,
        "imagefolder": imagefolder.is_image_folder,
    }
    return next((kind for kind, is_format in tests.items() if is_format(folder)), None)


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
