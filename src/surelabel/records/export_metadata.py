"""This module defines the metadata of an exported recognizer, which are stored in its file.

The metadata are one JSON object. An ONNX file stores the JSON text in ``metadata_props``, an
OpenVINO model in ``rt_info``, and a ``.pt2`` file in ``extra_files``, under ``METADATA_KEY``.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from surelabel.errors import DataError, InputError
from surelabel.records.label_tree import LabelTree

METADATA_KEY = "surelabel"  # of the metadata in a file
METADATA_FORMAT = 1
OUTPUTS = ("logits", "scores")
EXPORT_AGAIN = "Export the recognizer again."


@dataclass(frozen=True)
class ExportMetadata:
    """Metadata of an exported recognizer of c labels.

    Attributes:
        names: Labels in the order of the output columns, length c.
        names_with_aliases: Labels in the same order; aliases are separated by ``|``.
        output: ``logits`` if the output contains log-odds, or ``scores`` if the recognizer is not
            calibrated, so that the output only ranks labels.
        calibrated_on: Description of the calibration. If the output contains scores, None.
        thresholds: Minimum probability of each label, length c; a threshold of 1 excludes the
            label. If the output contains scores, None.
        input_name: Name of the input.
        input_shape: Shape of the input without the axis of images. The sizes of axes of any length
            are -1.
        output_name: Name of the output ``(n, c)``.
        preprocessing: Preprocessing settings of the encoder, with the keys of the
            ``preprocess_cfg`` of open_clip, such as ``size``, ``mean`` and ``std``.
        preprocessing_in_graph: Whether the input contains images, uint8 ``(n, h, w, 3)``, which are
            preprocessed in the graph. If False, the input contains preprocessed images.
        preprocessing_difference: Largest difference between the preprocessing in the graph and
            the preprocessing by Pillow, on the ``images`` of the check, in ``levels`` of pixels
            and in ``probability`` (or in ``scores``). Without preprocessing in the graph, None.
        min_side: Minimum side in pixels to which a JPEG is reduced while it is decoded.
        views: Views of an image on the second axis of the input: ``whole_image``, whether the
            first view is the whole image, and ``grids``, the numbers of rows and columns of the
            grids of tiles that follow. If the input has no axis of views, None.
        encoder: Name of the encoder.
        license: License of the encoder: ``name``, ``source`` and ``text``.
        method: Key of the method.
        method_settings: Settings of the method.
        fingerprint: Fingerprint of the recognizer.
        differences: Sentences about the differences between the graph and the recognizer.
        version: Version of surelabel that wrote the file.
        parents: Parent of each label that has one, or None if the labels have no tree.
    """

    names: tuple[str, ...]
    names_with_aliases: tuple[str, ...]
    output: str
    calibrated_on: str | None
    thresholds: tuple[float, ...] | None
    input_name: str
    input_shape: tuple[int, ...]
    output_name: str
    preprocessing: Mapping[str, Any]
    preprocessing_in_graph: bool
    preprocessing_difference: Mapping[str, float] | None
    min_side: int
    views: Mapping[str, Any] | None
    encoder: str
    license: Mapping[str, str]
    method: str
    method_settings: Mapping[str, Any]
    fingerprint: str
    differences: tuple[str, ...]
    version: str
    parents: Mapping[str, str] | None = None

    def as_json_object(self) -> dict[str, Any]:
        """Return the metadata as an object of JSON."""
        return {"format": METADATA_FORMAT, "kind": "recognizer", **asdict(self)}

    def as_json(self) -> str:
        """Return the metadata as a JSON text, in which all characters are ASCII."""
        return json.dumps(self.as_json_object())


def read_export_metadata(text: str, source: str) -> ExportMetadata:
    """Return the metadata in the JSON text of a file.

    Args:
        text: Text that :meth:`ExportMetadata.as_json` returned.
        source: Path of the file, for error messages.

    Raises:
        DataError: If the text is damaged, or if a newer version of surelabel wrote the file.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"The metadata of {source} must be JSON; reading failed ({error}). {EXPORT_AGAIN}"
        ) from error
    if not isinstance(values, dict) or values.get("kind") != "recognizer":
        raise DataError(
            f"The metadata of {source} must describe a recognizer; got {text[:60]!r}. "
            "Give a file that `surelabel export` wrote."
        )
    if values.get("format") != METADATA_FORMAT:
        raise DataError(
            f"The metadata of {source} must have the format {METADATA_FORMAT}; got "
            f"{values.get('format')!r}. Install the version of surelabel that wrote the file."
        )
    for key, (expected, accepts) in EXPECTED_VALUES.items():
        if key not in values or not accepts(values[key]):
            raise _metadata_error(source, key, expected, values.get(key))
    n_labels = len(values["names"])
    for key in ("names_with_aliases", "thresholds"):
        if values[key] is not None and len(values[key]) != n_labels:
            expected = f"a list with one entry for each of {n_labels} labels"
            raise _metadata_error(source, key, expected, values[key])
    if not _is_metadata_tree(values.get("parents"), values["names"]):
        expected = "null, or a tree of the labels, with the parent of each label"
        raise _metadata_error(source, "parents", expected, values["parents"])
    is_logits = values["output"] == "logits"
    for key in ("calibrated_on", "thresholds"):
        if (values[key] is not None) != is_logits:
            expected = "given for logits and null for scores"
            raise _metadata_error(source, key, expected, values[key])
    given = {field.name: values.get(field.name) for field in fields(ExportMetadata)}
    arguments: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
    }
    return ExportMetadata(**arguments)


def _metadata_error(source: str, key: str, expected: str, value: Any) -> DataError:
    return DataError(
        f"{key} in the metadata of {source} must be {expected}; got {str(value)[:60]!r}. "
        f"{EXPORT_AGAIN}"
    )


def _is_metadata_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_metadata_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_metadata_labels(value: Any) -> bool:
    return _is_metadata_texts(value) and 0 < len(value) == len(set(value))


def _is_metadata_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_metadata_probability(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1  # False for NaN


def _is_metadata_shape(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) in (3, 4)
    return is_list and all(type(size) is int and (size > 0 or size == -1) for size in value)


def _is_metadata_views(value: Any) -> bool:
    if value is None:
        return True
    grids = value.get("grids") if isinstance(value, dict) else None
    return (
        isinstance(grids, list)
        and bool(grids)
        and type(value.get("whole_image")) is bool
        and all(
            isinstance(grid, list)
            and len(grid) == 2
            and all(type(side) is int and side > 0 for side in grid)
            for grid in grids
        )
    )


def _is_metadata_tree(value: Any, names: Sequence[str]) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or not {*value, *map(str, value.values())} <= {*names}:
        return False
    try:
        LabelTree(value)
    except InputError:
        return False
    return True


def _is_metadata_difference(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(type(number) in (int, float) and math.isfinite(number) for number in value.values())
    )


EXPECTED_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "names": ("a list of different labels", _is_metadata_labels),
    "names_with_aliases": ("a list of different labels", _is_metadata_labels),
    "output": (f"one of {', '.join(OUTPUTS)}", lambda value: value in OUTPUTS),
    "calibrated_on": ("a text or null", lambda value: value is None or isinstance(value, str)),
    "thresholds": (
        "a list of numbers in [0, 1], or null",
        lambda value: (
            value is None or (isinstance(value, list) and all(map(_is_metadata_probability, value)))
        ),
    ),
    "input_name": ("a text", _is_metadata_text),
    "input_shape": ("a list of 3 or 4 sizes", _is_metadata_shape),
    "output_name": ("a text", _is_metadata_text),
    "preprocessing": ("an object", _is_metadata_object),
    "preprocessing_in_graph": ("true or false", lambda value: isinstance(value, bool)),
    "preprocessing_difference": ("an object of numbers, or null", _is_metadata_difference),
    "min_side": ("a number of pixels", lambda value: type(value) is int and value > 0),
    "views": ("null, or an object with whole_image and grids", _is_metadata_views),
    "encoder": ("a text", _is_metadata_text),
    "license": (
        "an object of texts",
        lambda value: isinstance(value, dict) and _is_metadata_texts([*value.values()]),
    ),
    "method": ("a text", _is_metadata_text),
    "method_settings": ("an object", _is_metadata_object),
    "fingerprint": ("a text", _is_metadata_text),
    "differences": ("a list of texts", _is_metadata_texts),
    "version": ("a text", _is_metadata_text),
}
