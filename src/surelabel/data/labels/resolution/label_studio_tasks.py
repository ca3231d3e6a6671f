"""Read single tasks of Label Studio: the image, and the choices of annotators and models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from surelabel.data.labels.resolution.label_studio_urls import image_of_data
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

REMEDY = "Export the project in the format JSON."
ChoicesByField = dict[str, set[str]]  # selected choices by the name of their field


@dataclass(frozen=True)
class LabelStudioTask:
    """A task of an export.

    Attributes:
        place: Place of the task in messages.
        image: Path of the image.
        annotations: Choices of each finished annotation.
        predictions: Choices of each prediction.
        labels: All labels of the recognizer, if surelabel wrote the task; otherwise empty.
    """

    place: str
    image: str
    annotations: list[ChoicesByField]
    predictions: list[ChoicesByField]
    labels: set[str]


def read_label_studio_task(
    path: Path, number: int, task: Any, *, is_root_known: bool
) -> LabelStudioTask:
    """Return the image and the choices of a task.

    Args:
        path: Path of the export, for messages.
        number: Number of the task in the export, for messages.
        task: Value of the JSON file.
        is_root_known: Whether the user gave the folder of the images; see :func:`image_of_data`.

    Raises:
        DataError: If ``task`` is not a task with one image.
    """
    place = f"{path}, element {number}"
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise DataError(
            f"{place}: expected a task, an object with data and annotations; got "
            f"{quote_of_file(task)}. {REMEDY} The format JSON-MIN is not supported."
        )
    if isinstance(task.get("id"), int):
        place = f"{path}, task {task['id']}"
    image = image_of_data(place, task["data"], is_root_known=is_root_known)
    finished = [
        annotation
        for annotation in _objects_of_key(place, task, "annotations")
        if annotation.get("was_cancelled") is not True
    ]
    if any(annotation.get("ground_truth") is True for annotation in finished):
        finished = [one for one in finished if one.get("ground_truth") is True]
    return LabelStudioTask(
        place,
        image,
        [_read_choices(place, annotation) for annotation in finished],
        [_read_choices(place, one) for one in _objects_of_key(place, task, "predictions")],
        _labels_of_probabilities(task["data"]),
    )


def _labels_of_probabilities(data: dict[str, Any]) -> set[str]:
    probabilities = data.get("probabilities")
    return {label for label in probabilities if label} if isinstance(probabilities, dict) else set()


def _objects_of_key(place: str, value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the list of objects at a key; predictions that are only an id are omitted."""
    objects = value.get(key)
    objects = [] if objects is None else objects
    if isinstance(objects, list) and key == "predictions":
        objects = [item for item in objects if not isinstance(item, int)]
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise DataError(
            f"{place}: {key} must be a list of objects; got {quote_of_file(objects)}. {REMEDY}"
        )
    return objects


def _read_choices(place: str, annotation: dict[str, Any]) -> ChoicesByField:
    """Return the selected choices of an annotation or a prediction, by the name of their field."""
    choices: ChoicesByField = {}
    for result in _objects_of_key(place, annotation, "result"):
        if result.get("type") != "choices":
            continue
        field, value = result.get("from_name"), result.get("value")
        selected = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(field, str) or not _is_list_of_labels(selected):
            raise DataError(
                f"{place}: a result of the type choices must have from_name and a list of texts "
                f"value.choices; got from_name {quote_of_file(field)} and value "
                f"{quote_of_file(value)}. {REMEDY}"
            )
        choices.setdefault(field, set()).update(selected)
    return choices


def _is_list_of_labels(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(label, str) and label for label in value)
