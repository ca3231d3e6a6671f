"""Read classifications of FiftyOne datasets (JSON), and write predictions with confidences."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.labels.resolution.fiftyone_samples import (
    KIND,
    REMEDY,
    FiftyOneSample,
    check_fiftyone_classes,
    read_fiftyone_labels,
    read_fiftyone_samples,
)
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.data.labels.resolution.pre_annotations import select_pre_annotations
from surelabel.data.labels.resolution.table_options import TARGET_READINGS, TargetReading
from surelabel.errors import DataError, InputError
from surelabel.file_readers import open_regular_file, quote_of_file, read_json
from surelabel.files import atomic_new_file, check_is_new_file
from surelabel.records import LabelledImages, Predictions
from surelabel.storage.image_paths import absolute_image_path

LABELS_FILE, SAMPLES_FILE = "labels.json", "samples.json"

_DATASET_KEY = re.compile(rb'"(?:labels"\s*:\s*\{|samples"\s*:\s*\[)')
_HEAD_BYTES = 2**22  # start of a file, which contains the classes before the key of the labels


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    label_field: str | None = None,
    missing: TargetReading | None = None,
) -> LabelledImages:
    """Read annotated images from a FiftyOne dataset in JSON.

    The file is ``labels.json`` of a ``FiftyOneImageClassificationDataset``, or ``samples.json`` of
    a ``FiftyOneDataset`` with a field of ``Classifications`` or ``Classification``. The labels of
    an image are positive, whatever their confidence is, and all other labels are negative. An empty
    list of classifications makes all labels negative. If the classifications of an image are null
    or absent, all its labels are unknown by default.

    Args:
        path: Path of the JSON file, or of a folder with one of these files.
        images_root: Folder to which image paths are relative. If None, the folder of the JSON file
            is used. For ``labels.json``, its subfolder ``data`` is used if it exists.
        names: Labels to return, in the order of the columns. If None, the classes of the dataset
            are returned in their order, followed by the sorted labels that are not among the
            classes. If a label is not in the dataset, its targets are unknown.
        label_field: Field of ``samples.json`` with the labels, such as ``ground_truth``. If None,
            there must be only one field with classifications.
        missing: Meaning of the labels of an image without classifications, ``negative`` or
            ``unknown``. If None, the labels are unknown.

    Raises:
        InputError: If ``missing`` has an invalid value, if no field has the name ``label_field``,
            or if ``label_field`` is given for ``labels.json``.
        DataError: If the file is not such a dataset, if several fields have classifications, or if
            an image does not exist. Also if a label is not in ``classes`` of ``labels.json``, or
            not in ``names``.
    """
    if missing not in (None, *TARGET_READINGS):
        raise InputError(f"missing must be one of {', '.join(TARGET_READINGS)}; got {missing!r}.")
    file = _find_dataset_file(Path(path))
    content = read_json(file, kind=KIND, remedy=REMEDY)
    if not is_fiftyone_content(content):
        raise DataError(
            f"{file} must contain an object with labels ({LABELS_FILE}) or with samples "
            f"({SAMPLES_FILE}) of FiftyOne; got {quote_of_file(content)}. {REMEDY}"
        )
    root = file.parent if images_root is None else Path(images_root)
    if "samples" in content:
        classes, samples = read_fiftyone_samples(file, content["samples"], label_field)
    else:
        if label_field is not None:
            raise InputError(
                f"label_field can be given only for {SAMPLES_FILE}; got {label_field!r} for "
                f"{file}. Remove label_field."
            )
        classes = check_fiftyone_classes(f"{file}, classes", content.get("classes"))
        samples = read_fiftyone_labels(file, content["labels"], classes)
        if images_root is None and (root / "data").is_dir():
            root = root / "data"
    found = set().union(*(sample.labels or () for sample in samples))
    columns = [*classes, *sorted(found.difference(classes))]
    if not columns:
        raise DataError(f"{file} must contain at least one label; got none. {REMEDY}")
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.full((len(samples), len(columns)), 0.0 if missing == "negative" else np.nan)
    for row, sample in zip(targets, samples, strict=True):
        if sample.labels is not None:
            row[:] = 0.0
            row[[column_of[label] for label in sample.labels]] = 1.0
    return resolve_labelled_images(
        file,
        [sample.image for sample in samples],
        columns,
        targets,
        images_root=root,
        names=names,
        reading=_describe_samples(samples, missing or "unknown"),
    )


def is_fiftyone_content(content: Any) -> bool:
    """Return True if the value of a JSON file is an object with ``labels`` or ``samples``."""
    return isinstance(content, dict) and (
        isinstance(content.get("labels"), dict) or isinstance(content.get("samples"), list)
    )


def is_fiftyone_folder(folder: Path) -> bool:
    """Return True if a folder contains ``samples.json`` or ``labels.json`` of FiftyOne.

    The key ``samples`` or ``labels`` must be in the first 4 MiB of the file, because other programs
    write files with these names too, such as a list of classes.
    """
    return any(_is_dataset_file(folder / name) for name in (SAMPLES_FILE, LABELS_FILE))


def _is_dataset_file(file: Path) -> bool:
    if not file.is_file():
        return False
    try:
        with open_regular_file(file) as stream:
            return _DATASET_KEY.search(stream.read(_HEAD_BYTES)) is not None
    except DataError:
        return False  # the file cannot be read, so its format is unknown


def write_predictions(
    predictions: Predictions | Iterable[Predictions],
    path: str | Path,
    *,
    thresholds: float | Array | None = None,
) -> None:
    """Write predictions as ``labels.json`` of a ``FiftyOneImageClassificationDataset``.

    Each image has a list of the labels that reach their thresholds, with the probability of the
    label as ``confidence``. The keys are absolute paths, so that FiftyOne imports the file without
    a copy of the images: ``Dataset.from_dir(dataset_type=…, labels_path=FILE)``.

    Args:
        predictions: Calibrated predictions, or blocks of them.
        path: Path of a new JSON file.
        thresholds: Minimum probability of a written label; see :func:`select_pre_annotations`.

    Raises:
        InputError, NotFitted: For the reasons of :func:`select_pre_annotations`.
        DataError: If the file exists or cannot be written, or if the path of an image is not valid
            UTF-8.

    Source:
        FiftyOne documentation, page "Exporting FiftyOne Datasets".
    """
    check_is_new_file(path)
    names, pre_annotations = select_pre_annotations(predictions, thresholds)
    class_of = {name: number for number, name in enumerate(names)}
    with atomic_new_file(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(f'{{"classes": {json.dumps(list(names), ensure_ascii=False)},\n"labels": {{')
        separator = "\n"
        for image in pre_annotations:
            key = json.dumps(absolute_image_path(image.path), ensure_ascii=False)
            labels = [
                {"label": class_of[label], "confidence": image.probabilities[label]}
                for label in image.labels
            ]
            file.write(f"{separator}{key}: {json.dumps(labels)}")
            separator = ",\n"
        file.write("\n}}\n")


def _find_dataset_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = [path / name for name in (SAMPLES_FILE, LABELS_FILE) if (path / name).is_file()]
    if len(files) != 1:
        raise DataError(
            f"{path} must contain either {SAMPLES_FILE} or {LABELS_FILE} of FiftyOne; got "
            f"{' and '.join(file.name for file in files) or 'neither'}. Give the path of the file."
        )
    return files[0]


def _describe_samples(samples: Sequence[FiftyOneSample], missing: str) -> str:
    """Return how the samples were read, without a full stop."""
    n_labelled = sum(sample.labels is not None for sample in samples)
    parts = [f"FiftyOne classifications of {n_labelled} of {format_count(len(samples), 'image')}"]
    if n_labelled < len(samples):
        without = format_count(len(samples) - n_labelled, "image")
        parts.append(f"all labels are {missing} for {without} without classifications")
    if any(sample.has_confidence for sample in samples):
        parts.append("confidences are not read")
    return ", ".join(parts)
