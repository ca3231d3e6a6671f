"""Read prediction files in Parquet, CSV or JSON lines format; the suffix selects the format."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from scipy.special import logit

from surelabel.arrays import LOGIT_LIMIT, Flags
from surelabel.data.prediction_folder_reading import read_prediction_folder
from surelabel.data.prediction_runs import is_prediction_folder
from surelabel.data.prediction_tables import (
    PREDICTION_READ_ERRORS,
    check_read_predictions,
    first_line_of_read_error,
    stack_prediction_columns,
)
from surelabel.data.prediction_writing import (
    LOGIT,
    PROBABILITY,
    SCORE,
    UNCERTAINTY,
    check_predictions_suffix,
)
from surelabel.data.stored_predictions import open_predictions
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file, open_lines, parse_json
from surelabel.records import Predictions, SkippedImage

PARQUET = ".parquet"
UNRECORDED_CALIBRATION = "calibrated (method not recorded in the file)"  # of CSV and JSON lines


def read_predictions(path: str | Path) -> Predictions:
    """Read predictions that :func:`write_predictions` wrote.

    CSV and JSON lines files do not contain the recognizer's fingerprint or the calibration method.
    For calibrated predictions from such files, ``calibration`` is ``UNRECORDED_CALIBRATION``. In
    CSV files that were written with ``spreadsheet_safe``, the apostrophe is part of the path. JSON
    lines files do not contain logits. The logits are computed from the probabilities and clipped to
    [-40, 40], with reduced precision for probabilities close to 1. If the file contains the shown
    labels, they are read as the mask ``shown``. Only Parquet files contain the thresholds of the
    labels.

    Args:
        path: Path of a file with suffix ``.parquet``, ``.csv`` or ``.jsonl``, or of a folder of
            predictions; see :func:`read_prediction_folder`.

    Raises:
        InputError: If the suffix is not supported.
        DataError: If the file is missing or damaged, does not contain predictions, or if
            predictions of images are missing in the folder.
        NoReadableImage: If all images of the folder failed.
    """
    if is_prediction_folder(path):
        return read_prediction_folder(path)
    check_predictions_suffix(path)
    if Path(path).suffix.lower() == PARQUET:
        return open_predictions(path).read()
    read = _READERS[Path(path).suffix.lower()]
    try:
        check_regular_file(path)
        predictions = read(Path(path))
        check_read_predictions(predictions)
    except PREDICTION_READ_ERRORS as error:
        raise DataError(
            f"{path} must contain predictions of surelabel; got: "
            f"{first_line_of_read_error(error)}. "
            f"Write the file again with `surelabel tag IMAGES --out {Path(path).name}`."
        ) from error
    return predictions


def is_prediction_file(path: str | Path) -> bool:
    """Return whether a path is a file with a prediction suffix, or a folder of predictions.

    Args:
        path: Path of a file or folder, or another text.
    """
    is_file = Path(path).suffix.lower() in (PARQUET, *_READERS) and Path(path).is_file()
    return is_file or is_prediction_folder(path)


def _mask_of_shown_labels(labels: Sequence[Any], names: Sequence[str]) -> Flags:
    """Return the mask ``(n, c)`` of the shown labels of n images.

    Raises:
        ValueError: If a list contains a label twice or a label that is not in ``names``.
    """
    column_of = {name: column for column, name in enumerate(names)}
    shown = np.zeros((len(labels), len(names)), dtype=bool)
    for flags, shown_labels in zip(shown, labels, strict=True):
        if not isinstance(shown_labels, list) or not all(
            isinstance(label, str) and label in column_of for label in shown_labels
        ):
            raise ValueError("a value of shown that is not a list of the labels of the file")
        if len(set(shown_labels)) < len(shown_labels):
            raise ValueError("a value of shown that contains a label twice")
        flags[[column_of[label] for label in shown_labels]] = True
    return shown


def _read_predictions_csv(path: Path) -> Predictions:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    names = [column.removeprefix(SCORE) for column in header if column.startswith(SCORE)]
    if header[:1] != ["path"] or header[-1:] != ["skipped"]:
        raise ValueError("a header that does not start with path and end with skipped")
    texts = ("path", "uncertainty_kind", "shown", "skipped")
    types = {name: pa.string() if name in texts else pa.float32() for name in header}
    table = pacsv.read_csv(
        path,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(column_types=types, null_values=[""]),
    )
    reasons = table["skipped"].to_pylist()
    read_rows = table.filter(pa.array([not reason for reason in reasons]))
    skipped = [
        SkippedImage(p, r) for p, r in zip(table["path"].to_pylist(), reasons, strict=True) if r
    ]
    if any(read_rows[column].null_count for column in header[:-1]):
        raise ValueError("an empty cell in the row of an image that is not skipped")
    scores = stack_prediction_columns(read_rows, SCORE, names)
    calibrated = any(column.startswith(PROBABILITY) for column in header)
    has_kind = "uncertainty_kind" in header
    kinds = read_rows["uncertainty_kind"].to_pylist() if has_kind else []
    uncertainty = stack_prediction_columns(read_rows, UNCERTAINTY, names)
    shown = map(parse_json, read_rows["shown"].to_pylist()) if "shown" in header else None
    return Predictions(
        paths=read_rows["path"].to_pylist(),
        names=names,
        scores=np.empty((read_rows.num_rows, 0), np.float32) if scores is None else scores,
        logits=stack_prediction_columns(read_rows, LOGIT, names),
        calibration=UNRECORDED_CALIBRATION if calibrated else None,
        skipped=tuple(skipped),
        uncertainty=uncertainty if read_rows.num_rows else None,
        uncertainty_kind=_single_uncertainty_kind(kinds),
        shown=None if shown is None else _mask_of_shown_labels(list(shown), names),
    )


def _read_predictions_jsonl(path: Path) -> Predictions:
    with open_lines(path) as texts:
        lines = [
            _parse_prediction_line(number, text)
            for number, text in enumerate(texts, start=1)
            if text.strip()
        ]
    predicted = [line for line in lines if "skipped" not in line]
    names = [label["label"] for label in predicted[0]["labels"]] if predicted else []
    scores = np.zeros((len(predicted), len(names)))
    probabilities = np.zeros_like(scores)
    for row, line in enumerate(predicted):
        if [label["label"] for label in line["labels"]] != names:
            raise ValueError(f"different labels for {predicted[0]['path']} and {line['path']}")
        scores[row] = [label["score"] for label in line["labels"]]
        probabilities[row] = [
            _prediction_probability_or_nan(label["probability"]) for label in line["labels"]
        ]
    kind = _single_uncertainty_kind([line.get("uncertainty_kind") for line in predicted])
    uncertainty = [[label["uncertainty"] for label in line["labels"]] for line in predicted if kind]
    shown = [line["shown"] for line in predicted if "shown" in line]
    if len(shown) not in (0, len(predicted)):
        raise ValueError("shown in only some of the lines")
    calibrated = bool(probabilities.size) and not np.isnan(probabilities).any()
    logits = np.clip(logit(probabilities), -LOGIT_LIMIT, LOGIT_LIMIT).astype(np.float32)
    return Predictions(
        paths=[line["path"] for line in predicted],
        names=names,
        scores=scores.astype(np.float32),
        logits=logits if calibrated else None,
        calibration=UNRECORDED_CALIBRATION if calibrated else None,
        skipped=tuple(SkippedImage(s["path"], s["skipped"]) for s in lines if "skipped" in s),
        uncertainty=np.array(uncertainty, np.float32) if kind else None,
        uncertainty_kind=kind,
        shown=_mask_of_shown_labels(shown, names) if shown else None,
    )


def _parse_prediction_line(number: int, text: str) -> dict[str, Any]:
    try:
        line = parse_json(text)
    except ValueError as error:
        raise ValueError(f"invalid JSON on line {number} ({error})") from error
    if not isinstance(line, dict) or "path" not in line or not {"labels", "skipped"} & line.keys():
        raise ValueError(f"line {number} without path, or without labels and skipped")
    return line


def _single_uncertainty_kind(kinds: Sequence[str | None]) -> str | None:
    """Return the kind of uncertainty of all images, or None if there is no image or no kind.

    Raises:
        ValueError: If the images have different kinds.
    """
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError("several values of uncertainty_kind")
    return kinds[0] if kinds else None


def _prediction_probability_or_nan(probability: float | None) -> float:
    return float("nan") if probability is None else probability


_READERS: dict[str, Callable[[Path], Predictions]] = {
    ".csv": _read_predictions_csv,
    ".jsonl": _read_predictions_jsonl,
}
