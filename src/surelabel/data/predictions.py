"""Read prediction files in Parquet, CSV or JSON lines format; the suffix selects the format."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy.special import logit

from surelabel.arrays import LOGIT_LIMIT, Flags
from surelabel.data.prediction_writing import (
    LOGIT,
    PARQUET_METADATA_KEY,
    PROBABILITY,
    SCORE,
    SHOWN,
    UNCERTAINTY,
    check_predictions_suffix,
)
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file, open_lines, parse_json
from surelabel.records import Predictions, SkippedImage

UNRECORDED_CALIBRATION = "calibrated (method not recorded in the file)"  # of CSV and JSON lines

_READ_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    csv.Error,
    pa.ArrowException,
    MemoryError,
)


def read_predictions(path: str | Path) -> Predictions:
    """Read predictions that :func:`write_predictions` wrote.

    CSV and JSON lines files do not contain the recognizer's fingerprint or the calibration method.
    For calibrated predictions from such files, ``calibration`` is ``UNRECORDED_CALIBRATION``. In
    CSV files that were written with ``spreadsheet_safe``, the apostrophe is part of the path. JSON
    lines files do not contain logits. Their logits are computed from the probabilities, with
    reduced precision for probabilities close to 1. If the file contains the shown labels, they are
    read as the mask ``shown``. Only Parquet files contain the thresholds of the labels.

    Args:
        path: Path of a file with suffix ``.parquet``, ``.csv`` or ``.jsonl``.

    Raises:
        InputError: If the suffix is not supported.
        DataError: If the file is missing or damaged, or does not contain predictions.
    """
    check_predictions_suffix(path)
    read = _READERS[Path(path).suffix.lower()]
    try:
        check_regular_file(path)
        predictions = read(Path(path))
        _check_read_predictions(predictions)
    except _READ_ERRORS as error:
        raise DataError(
            f"{path} must contain predictions of surelabel; got: "
            f"{_first_prediction_error_line(error)}. "
            f"Write the file again with `surelabel tag IMAGES --out {Path(path).name}`."
        ) from error
    return predictions


def is_prediction_file(path: str | Path) -> bool:
    """Return True if a path is an existing file with the suffix of predictions.

    Args:
        path: Path of a file or folder, or another text.
    """
    return Path(path).suffix.lower() in _READERS and Path(path).is_file()


def _check_read_predictions(predictions: Predictions) -> None:
    """Check the types and ranges that a damaged file can violate.

    Raises:
        ValueError: If a path or label is not valid text, or a value is not finite or out of range.
    """
    skipped = [text for image in predictions.skipped for text in (image.path, image.reason)]
    texts = [*predictions.paths, *skipped, predictions.model, predictions.calibration or ""]
    if not all(isinstance(text, str) for text in (*texts, *predictions.names)):
        raise ValueError("a path, label or description that is not text")
    if len(set(predictions.names)) < len(predictions.names):
        raise ValueError("a label twice")
    for name in predictions.names:
        name.encode()  # half of a surrogate pair cannot be written again
    if not np.isfinite(predictions.scores).all():
        raise ValueError("a score that is not finite")
    if predictions.logits is not None and not (abs(predictions.logits) <= LOGIT_LIMIT).all():
        raise ValueError(f"a logit outside [-{LOGIT_LIMIT}, {LOGIT_LIMIT}]")
    uncertainty = predictions.uncertainty
    if uncertainty is not None and not ((uncertainty >= 0) & np.isfinite(uncertainty)).all():
        raise ValueError("an uncertainty that is negative or not finite")
    thresholds = predictions.thresholds
    if thresholds is not None and not ((thresholds >= 0) & (thresholds <= 1)).all():
        raise ValueError("a threshold outside [0, 1]")


def _first_prediction_error_line(error: Exception) -> str:
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return line if len(line) <= 300 else f"{line[:300]}…"


def _stack_prediction_columns(
    table: pa.Table, prefix: str, names: Sequence[str]
) -> npt.NDArray[np.float32] | None:
    """Return the columns with a prefix as ``(n, c)``, or None if there is no such column."""
    if not any(column.startswith(prefix) for column in table.column_names):
        return None
    values = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for index, name in enumerate(names):
        values[:, index] = table[prefix + name].to_numpy()
    return values


def _stack_shown_columns(table: pa.Table, names: Sequence[str]) -> Flags | None:
    """Return the boolean columns of the shown labels as ``(n, c)``, or None without such a column.

    Raises:
        TypeError: If a column is not boolean.
    """
    if not any(column.startswith(SHOWN) for column in table.column_names):
        return None
    shown = np.empty((table.num_rows, len(names)), dtype=bool)
    for index, name in enumerate(names):
        column = table[SHOWN + name]
        if column.type != pa.bool_() or column.null_count:
            raise TypeError(f"a column {SHOWN}{name} with values that are not true or false")
        shown[:, index] = column.to_numpy()
    return shown


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
            raise ValueError("a value of shown with a label twice")
        flags[[column_of[label] for label in shown_labels]] = True
    return shown


def _read_predictions_parquet(path: Path) -> Predictions:
    with pa.OSFile(str(path)) as file:
        table = pq.read_table(file, page_checksum_verification=True)
    schema_metadata = table.schema.metadata or {}
    if PARQUET_METADATA_KEY not in schema_metadata:
        raise ValueError("a Parquet file without the metadata of surelabel")
    metadata = parse_json(schema_metadata[PARQUET_METADATA_KEY])
    scores = _stack_prediction_columns(table, SCORE, metadata["names"])
    thresholds = metadata.get("thresholds")
    return Predictions(
        paths=table["path"].to_pylist(),
        names=metadata["names"],
        scores=np.empty((table.num_rows, 0), np.float32) if scores is None else scores,
        logits=_stack_prediction_columns(table, LOGIT, metadata["names"]),
        calibration=metadata["calibration"],
        model=metadata["model"],
        skipped=tuple(SkippedImage(*skipped) for skipped in metadata["skipped"]),
        uncertainty=_stack_prediction_columns(table, UNCERTAINTY, metadata["names"]),
        uncertainty_kind=metadata.get("uncertainty_kind"),
        shown=_stack_shown_columns(table, metadata["names"]),
        thresholds=None if thresholds is None else np.array(thresholds, dtype=float),
    )


def _read_predictions_csv(path: Path) -> Predictions:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    names = [column.removeprefix(SCORE) for column in header if column.startswith(SCORE)]
    if header[:1] != ["path"] or header[-1:] != ["skipped"]:
        raise ValueError("a header without path, score:NAME … and skipped")
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
    scores = _stack_prediction_columns(read_rows, SCORE, names)
    calibrated = any(column.startswith(PROBABILITY) for column in header)
    has_kind = "uncertainty_kind" in header
    kinds = read_rows["uncertainty_kind"].to_pylist() if has_kind else []
    uncertainty = _stack_prediction_columns(read_rows, UNCERTAINTY, names)
    shown = map(parse_json, read_rows["shown"].to_pylist()) if "shown" in header else None
    return Predictions(
        paths=read_rows["path"].to_pylist(),
        names=names,
        scores=np.empty((read_rows.num_rows, 0), np.float32) if scores is None else scores,
        logits=_stack_prediction_columns(read_rows, LOGIT, names),
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
            raise ValueError(f"other labels for {line['path']} than for {predicted[0]['path']}")
        scores[row] = [label["score"] for label in line["labels"]]
        probabilities[row] = [
            _prediction_probability_or_nan(label["probability"]) for label in line["labels"]
        ]
    kind = _single_uncertainty_kind([line.get("uncertainty_kind") for line in predicted])
    uncertainty = [[label["uncertainty"] for label in line["labels"]] for line in predicted if kind]
    shown = [line["shown"] for line in predicted if "shown" in line]
    if len(shown) not in (0, len(predicted)):
        raise ValueError("shown in some lines, and not in others")
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
        raise ValueError(f"no JSON on line {number} ({error})") from error
    if not isinstance(line, dict) or "path" not in line or not {"labels", "skipped"} & line.keys():
        raise ValueError(f"no path with labels on line {number}")
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
    ".parquet": _read_predictions_parquet,
    ".csv": _read_predictions_csv,
    ".jsonl": _read_predictions_jsonl,
}
