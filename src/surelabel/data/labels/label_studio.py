"""Read exports of Label Studio (JSON), and write predictions as pre-annotated tasks."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.labels.resolution.image_resolution import (
    resolve_label_columns,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.label_fields import choose_label_field
from surelabel.data.labels.resolution.label_studio_tasks import (
    REMEDY,
    ChoicesByField,
    LabelStudioTask,
    read_label_studio_task,
)
from surelabel.data.labels.resolution.label_studio_urls import data_of_image
from surelabel.data.labels.resolution.pre_annotations import DECIMALS, select_pre_annotations
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json
from surelabel.files import atomic_new_file, check_is_new_file
from surelabel.records import LabelledImages, Predictions

FIELD = "labels"  # name of the tag Choices in the labeling interface


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    label_field: str | None = None,
    with_predictions: bool = False,
) -> LabelledImages:
    """Read annotated images from an export of Label Studio in the format JSON.

    - In a task with a finished annotation, the selected choices are positive, and all other choices
      are negative. An annotation without a selected choice makes all choices negative.
    - If a task has several finished annotations, the target of a choice is the fraction of the
      annotations in which it is selected. If annotations are marked as ground truth, only these are
      used.
    - Skipped (cancelled) annotations and drafts are ignored. All choices are unknown for a task
      without a finished annotation.

    Regions and all other results that are not choices are ignored.

    Args:
        path: Path of the JSON file.
        images_root: Folder to which image paths are relative: for ``/data/local-files/?d=…``, the
            document root of the server; for ``/data/upload/…``, its media folder. If None, the
            folder of the JSON file is used, except for tasks that surelabel wrote, which contain
            the absolute path of the image.
        names: Choices of the project, in the order of the columns. If None, the sorted choices that
            occur in an annotation or a prediction are returned, and the labels of the recognizer if
            surelabel wrote the tasks. Other exports do not contain choices that were never
            selected.
        label_field: Name of the tag Choices whose choices are the labels. If None, there must be
            only one such tag.
        with_predictions: Whether the prediction of a task without a finished annotation is read
            like an annotation.

    Raises:
        DataError: If the file is not such an export, if an image is a URL or does not exist, if
            several tags have choices, or if a choice is not in ``names``. Also if
            ``with_predictions`` is True, and a task has several predictions.
        InputError: If no tag has the name ``label_field``.
    """
    path = Path(path)
    content = read_json(path, kind="an export of Label Studio in JSON", remedy=REMEDY)
    if not isinstance(content, list):
        raise DataError(
            f"{path} must contain a list of tasks of Label Studio; got a value of type "
            f"{type(content).__name__}. {REMEDY}"
        )
    tasks = [
        read_label_studio_task(path, number, task, is_root_known=images_root is not None)
        for number, task in enumerate(content, start=1)
    ]
    choices = [choices for task in tasks for choices in (*task.annotations, *task.predictions)]
    field = choose_label_field(path, (name for fields in choices for name in fields), label_field)
    labels = set().union(
        *(fields.get(field, set()) for fields in choices), *(task.labels for task in tasks)
    )
    columns = resolve_label_columns(path, labels, names)
    if not columns:
        raise DataError(
            f"{path} must contain at least one selected choice; got none. Give the choices of the "
            "project as names."
        )
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.full((len(tasks), len(columns)), np.nan)
    for row, task in zip(targets, tasks, strict=True):
        annotations = task.annotations
        if not annotations and with_predictions:
            annotations = _single_prediction(task)
        if annotations:
            row[:] = 0.0
        for fields in annotations:
            row[[column_of[label] for label in fields.get(field, ())]] += 1.0
        row /= max(len(annotations), 1)
    return resolve_labelled_images(
        path,
        [task.image for task in tasks],
        columns,
        targets,
        images_root=images_root,
        names=names,
        reading=_describe_tasks(tasks, targets, field),
    )


def is_label_studio_content(content: Any) -> bool:
    """Return True if the value of a JSON file is a list of tasks of Label Studio."""
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and isinstance(content[0].get("data"), dict)
    )


def write_predictions(
    predictions: Predictions | Iterable[Predictions],
    path: str | Path,
    *,
    thresholds: float | Array | None = None,
) -> None:
    """Write predictions as tasks with pre-annotations, which Label Studio imports.

    In each task, the labels that reach their thresholds are selected. ``data.probabilities`` has
    the probability of each label, and ``data.path`` has the absolute path of the image. Label
    Studio copies ``data`` to its exports. ``score`` of a prediction is the mean, over the labels,
    of the probability that the label is correctly selected or correctly not selected. The URLs of
    the images are those of a server with the document root ``/``. In the labeling interface, the
    tag Image must have the name ``image``, and the tag Choices must have the name ``labels``.

    Args:
        predictions: Calibrated predictions, or blocks of them.
        path: Path of a new JSON file.
        thresholds: Minimum probability of a selected label; see :func:`select_pre_annotations`.

    Raises:
        InputError, NotFitted: For the reasons of :func:`select_pre_annotations`.
        DataError: If the file exists or cannot be written, or if the path of an image is not valid
            UTF-8.

    Source:
        Label Studio documentation, pages "Label Studio Task Format" and "Import pre-annotated
        data into Label Studio".
    """
    check_is_new_file(path)
    _, pre_annotations = select_pre_annotations(predictions, thresholds)
    with atomic_new_file(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        separator = "[\n"
        for image in pre_annotations:
            data = data_of_image(image.path) | {"probabilities": image.probabilities}
            prediction = task_prediction(image.probabilities, image.labels, image.model)
            task = {"data": data, "predictions": [prediction]}
            file.write(separator + json.dumps(task, ensure_ascii=False))
            separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")


def task_prediction(
    probabilities: dict[str, float], labels: Sequence[str], model: str
) -> dict[str, Any]:
    """Return a prediction of a task.

    Args:
        probabilities: Probability of each label, by label.
        labels: Selected labels.
        model: Fingerprint of the recognizer.
    """
    selected = set(labels)
    correct = [p if label in selected else 1.0 - p for label, p in probabilities.items()]
    result = {
        "id": FIELD,
        "from_name": FIELD,
        "to_name": "image",
        "type": "choices",
        "value": {"choices": list(labels)},
    }
    return {
        "model_version": model or "surelabel",
        "score": round(float(np.mean(correct)), DECIMALS) if correct else 0.0,
        "result": [result],
    }


def _single_prediction(task: LabelStudioTask) -> list[ChoicesByField]:
    if len(task.predictions) > 1:
        raise DataError(
            f"{task.place}: expected at most one prediction; got {len(task.predictions)}. Remove "
            "the other predictions."
        )
    return task.predictions


def _describe_tasks(tasks: Sequence[LabelStudioTask], targets: Array, field: str) -> str:
    """Return how the tasks were read, without a full stop."""
    n_annotated = sum(bool(task.annotations) for task in tasks)
    n_unknown = int(np.isnan(targets).all(axis=1).sum())
    n_predicted = len(tasks) - n_annotated - n_unknown
    n_several = sum(len(task.annotations) > 1 for task in tasks)
    parts = [
        f"choices of the field {quote_of_file(field)} in Label Studio annotations of {n_annotated} "
        f"of {format_count(len(tasks), 'task')}"
    ]
    if n_predicted:
        parts.append(f"predictions are read as annotations of {format_count(n_predicted, 'task')}")
    if n_unknown:
        parts.append(
            "all choices are unknown for "
            f"{format_count(n_unknown, 'task')} without a finished annotation"
        )
    if n_several:
        parts.append(
            f"targets of {format_count(n_several, 'task')} with several annotations are fractions "
            "of the annotations"
        )
    return ", ".join(parts)
