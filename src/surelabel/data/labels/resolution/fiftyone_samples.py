"""Read the labels of single images in JSON files of FiftyOne."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surelabel.counts import format_count
from surelabel.data.labels.resolution.label_fields import choose_label_field
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json

METADATA_FILE = "metadata.json"  # beside samples.json
KIND = "a FiftyOne dataset in JSON"
REMEDY = "Export the dataset again."


@dataclass(frozen=True)
class FiftyOneSample:
    """Classifications of an image.

    Attributes:
        image: Path of the image.
        labels: Labels of the image, or None if the image has no classifications.
        has_confidence: Whether a classification has a confidence.
    """

    image: str
    labels: set[str] | None
    has_confidence: bool


def check_fiftyone_classes(place: str, classes: Any) -> list[str]:
    """Return a list of classes, which is empty if ``classes`` is None.

    Args:
        place: Place of the classes in messages.
        classes: Value of a JSON file.

    Raises:
        DataError: If ``classes`` is neither None nor a list of distinct labels.
    """
    if classes is None:
        return []
    is_list = isinstance(classes, list) and all(isinstance(c, str) and c for c in classes)
    if not is_list or len(set(classes)) < len(classes):
        raise DataError(
            f"{place}: expected a list of labels without repetition; got "
            f"{quote_of_file(classes)}. {REMEDY}"
        )
    return list(classes)


def read_fiftyone_labels(
    file: Path, labels: dict[str, Any], classes: Sequence[str]
) -> list[FiftyOneSample]:
    """Return the samples of ``labels.json``, whose labels are texts or indices of classes.

    Args:
        file: Path of the file.
        labels: Labels by image: null, or one or several targets.
        classes: Classes of the file, or an empty list.

    Raises:
        DataError: If the path of an image leaves its folder, or if a target is not a class.
    """
    samples, class_set = [], set(classes)
    for key, target in labels.items():
        place = f"{file}, labels of {quote_of_file(key)}"
        check_relative_image_path(place, key, allows_absolute=True)
        sample = _sample_of_targets(place, key, target, classes)
        if classes and sample.labels and (unknown := sample.labels - class_set):
            raise DataError(
                f"{place}: a label must be one of the classes; got {quote_of_file(min(unknown))}. "
                "Correct the label, or add it to classes."
            )
        samples.append(sample)
    return samples


def _sample_of_targets(
    place: str, image: str, targets: Any, classes: Sequence[str]
) -> FiftyOneSample:
    if targets is None:
        return FiftyOneSample(image, None, False)
    labels, has_confidence = set(), False
    for target in targets if isinstance(targets, list) else [targets]:
        value = target
        if isinstance(target, dict):
            value = target.get("label")
            has_confidence |= target.get("confidence") is not None
        labels.add(_label_of_target(place, value, classes))
    return FiftyOneSample(image, labels, has_confidence)


def _label_of_target(place: str, value: Any, classes: Sequence[str]) -> str:
    """Return the label of a target: a text, or the index of a class."""
    if type(value) is int and 0 <= value < len(classes):
        return classes[value]
    if isinstance(value, str) and value:
        return value
    raise DataError(
        f"{place}: a label must be a text, or the index of one of "
        f"{format_count(len(classes), 'class', 'classes')}; got {quote_of_file(value)}. Correct "
        "the label."
    )


def read_fiftyone_samples(
    file: Path, samples: list[Any], label_field: str | None
) -> tuple[list[str], list[FiftyOneSample]]:
    """Return the classes of ``metadata.json``, if any, and the samples of ``samples.json``.

    Args:
        file: Path of ``samples.json``.
        samples: Samples of the file.
        label_field: Field with the labels. If None, there must be only one field with labels.

    Raises:
        InputError: If no field has the name ``label_field``.
        DataError: If a sample or ``metadata.json`` is invalid, or if there are several fields.
    """
    fields: set[str] = set()
    for number, sample in enumerate(samples, start=1):
        if not isinstance(sample, dict) or not isinstance(sample.get("filepath"), str):
            raise DataError(
                f"{file}, sample {number}: expected an object with filepath; got "
                f"{quote_of_file(sample)}. {REMEDY}"
            )
        fields |= {name for name, value in sample.items() if _is_classification(value)}
    field = choose_label_field(file, fields, label_field)
    return _classes_of_metadata(file.with_name(METADATA_FILE), field), [
        _read_sample(file, number, sample, field) for number, sample in enumerate(samples, start=1)
    ]


def _is_classification(value: Any) -> bool:
    return isinstance(value, dict) and value.get("_cls") in ("Classification", "Classifications")


def _read_sample(file: Path, number: int, sample: dict[str, Any], field: str) -> FiftyOneSample:
    image = sample["filepath"]
    place = f"{file}, sample {number} ({quote_of_file(image)})"
    check_relative_image_path(place, image, allows_absolute=True)
    value = sample.get(field)
    if value is None:
        return FiftyOneSample(image, None, False)
    targets = value
    if _is_classification(value) and value["_cls"] == "Classifications":
        targets = value.get("classifications")
    is_list = isinstance(targets, list) and all(isinstance(target, dict) for target in targets)
    if not _is_classification(value) or not (is_list or targets is value):
        raise DataError(
            f"{place}: {quote_of_file(field)} must be Classifications with a list of "
            f"classifications, or a Classification; got {quote_of_file(value)}. {REMEDY}"
        )
    return _sample_of_targets(place, image, targets, ())


def _classes_of_metadata(file: Path, field: str) -> list[str]:
    """Return the classes of a field in ``metadata.json``, or its default classes."""
    if not file.exists():
        return []
    metadata = read_json(file, kind=KIND, remedy=REMEDY)
    if not isinstance(metadata, dict):
        raise DataError(f"{file} must contain one object; got {quote_of_file(metadata)}. {REMEDY}")
    classes = metadata.get("classes")
    if isinstance(classes, dict) and classes.get(field):
        return check_fiftyone_classes(f"{file}, classes of {quote_of_file(field)}", classes[field])
    return check_fiftyone_classes(f"{file}, default_classes", metadata.get("default_classes"))
