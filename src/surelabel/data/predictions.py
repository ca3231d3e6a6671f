"""Prediction files in Parquet, CSV or JSON lines format; the file suffix selects the format."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy.special import logit

from surelabel.arrays import LOGIT_LIMIT
from surelabel.errors import DataError, InputError
from surelabel.files import atomic_file, escape_non_utf8_file_path
from surelabel.records import Predictions, SkippedImage

SCORE, LOGIT, PROBABILITY = "score:", "logit:", "probability:"  # prefixes of the columns of a label
UNRECORDED_CALIBRATION = "calibrated (method not recorded in the file)"  # of CSV and JSON lines

_METADATA_KEY = b"surelabel"


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write predictions to a file; an existing file is replaced when the new file is complete.

    - A ``.parquet`` file contains all predictions except the image vectors, with one row per
      image. The columns are ``path`` and, for each label NAME, ``score:NAME``, ``logit:NAME`` if
      there are logits, and ``probability:NAME`` if the logits are calibrated. Labels,
      calibration, model, version and skipped images are stored as JSON under the key
      ``surelabel`` of the schema metadata.
    - A ``.csv`` file has the columns of the Parquet file and a column ``skipped``. In the row of
      a skipped image, this column contains the reason, and the cells of all labels are empty.
    - A ``.jsonl`` file has one line per image,
      ``{"path": …, "labels": [{"label": …, "score": …, "probability": …}, …]}``. The probability
      is null if the predictions are uncalibrated. The line of a skipped image is
      ``{"path": …, "skipped": reason}``.

    Args:
        predictions: Predictions of n images.
        path: Path of a file with suffix ``.parquet``, ``.csv`` or ``.jsonl``.

    Raises:
        InputError: If the suffix is not supported, or if a score or logit is not finite.
        DataError: If the file cannot be written.
    """
    write, _ = _prediction_format(path)
    for kind, values in (("score", predictions.scores), ("logit", predictions.logits)):
        if values is not None and not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(
                f"Every {kind} must be finite; got {values[row, column]} for "
                f"{predictions.names[column]!r} in {predictions.paths[row]}. Predict again."
            )
    with atomic_file(path) as temporary:
        write(predictions, temporary)


def read_predictions(path: str | Path) -> Predictions:
    """Read predictions that :func:`write_predictions` wrote.

    CSV and JSON lines files do not contain the recognizer's fingerprint or the calibration method.
    For calibrated predictions from such files, ``calibration`` is ``UNRECORDED_CALIBRATION``. JSON
    lines files do not contain logits. Their logits are computed from the probabilities, with
    reduced precision for probabilities close to 1.

    Args:
        path: Path of a file with suffix ``.parquet``, ``.csv`` or ``.jsonl``.

    Raises:
        InputError: If the suffix is not supported.
        DataError: If the file is missing or damaged, or does not contain predictions.
    """
    _, read = _prediction_format(path)
    try:
        return read(Path(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{path} must contain predictions of surelabel; got: "
            f"{_first_prediction_error_line(error)}. "
            f"Write the file again with `surelabel tag IMAGES --out {Path(path).name}`."
        ) from error


def check_predictions_suffix(path: str | Path) -> None:
    """Raise an error if ``write_predictions`` does not support the suffix of ``path``.

    Raises:
        InputError: If the suffix is not ``.parquet``, ``.csv`` or ``.jsonl``.
    """
    _prediction_format(path)


def _prediction_format(
    path: str | Path,
) -> tuple[Callable[[Predictions, Path], None], Callable[[Path], Predictions]]:
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(
            f"The suffix of a prediction file must be one of {', '.join(_FORMATS)}; got "
            f"{str(path)!r}. Use one of these suffixes."
        )
    return _FORMATS[suffix]


def _first_prediction_error_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _prediction_columns(predictions: Predictions) -> dict[str, pa.Array]:
    """Return the column ``path`` and the columns of each label, by column name."""
    parts: dict[str, npt.NDArray[Any]] = {SCORE: predictions.scores}
    if predictions.logits is not None:
        parts[LOGIT] = predictions.logits
    if predictions.calibration is not None and predictions.logits is not None:
        parts[PROBABILITY] = predictions.probabilities
    columns = {"path": pa.array(map(escape_non_utf8_file_path, predictions.paths), pa.string())}
    for index, name in enumerate(predictions.names):
        for prefix, values in parts.items():
            columns[prefix + name] = pa.array(values[:, index].astype(np.float32))
    return columns


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


def _write_predictions_parquet(predictions: Predictions, path: Path) -> None:
    metadata = {
        "names": list(predictions.names),
        "calibration": predictions.calibration,
        "model": predictions.model,
        "version": version("surelabel"),
        "skipped": [[escape_non_utf8_file_path(s.path), s.reason] for s in predictions.skipped],
    }
    table = pa.table(_prediction_columns(predictions)).replace_schema_metadata(
        {_METADATA_KEY: json.dumps(metadata)}
    )
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _read_predictions_parquet(path: Path) -> Predictions:
    with pa.OSFile(str(path)) as file:
        table = pq.read_table(file, page_checksum_verification=True)
    schema_metadata = table.schema.metadata or {}
    if _METADATA_KEY not in schema_metadata:
        raise ValueError("a Parquet file without the metadata of surelabel")
    metadata = json.loads(schema_metadata[_METADATA_KEY])
    scores = _stack_prediction_columns(table, SCORE, metadata["names"])
    return Predictions(
        paths=table["path"].to_pylist(),
        names=metadata["names"],
        scores=np.empty((table.num_rows, 0), np.float32) if scores is None else scores,
        logits=_stack_prediction_columns(table, LOGIT, metadata["names"]),
        calibration=metadata["calibration"],
        model=metadata["model"],
        skipped=tuple(SkippedImage(*skipped) for skipped in metadata["skipped"]),
    )


def _write_predictions_csv(predictions: Predictions, path: Path) -> None:
    columns = _prediction_columns(predictions)
    skipped = predictions.skipped
    table = pa.table(columns | {"skipped": pa.nulls(len(predictions), pa.string())})
    skipped_rows = {
        name: pa.nulls(len(skipped), column.type) for name, column in columns.items()
    } | {
        "path": pa.array([escape_non_utf8_file_path(s.path) for s in skipped], pa.string()),
        "skipped": pa.array([s.reason for s in skipped], pa.string()),
    }
    pacsv.write_csv(pa.concat_tables([table, pa.table(skipped_rows)]), path)


def _read_predictions_csv(path: Path) -> Predictions:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    names = [column.removeprefix(SCORE) for column in header if column.startswith(SCORE)]
    if header[:1] != ["path"] or header[-1:] != ["skipped"]:
        raise ValueError("a header without path, score:NAME … and skipped")
    types = {name: pa.string() if name in ("path", "skipped") else pa.float32() for name in header}
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
    return Predictions(
        paths=read_rows["path"].to_pylist(),
        names=names,
        scores=np.empty((read_rows.num_rows, 0), np.float32) if scores is None else scores,
        logits=_stack_prediction_columns(read_rows, LOGIT, names),
        calibration=UNRECORDED_CALIBRATION if calibrated else None,
        skipped=tuple(skipped),
    )


def _write_predictions_jsonl(predictions: Predictions, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for line in _prediction_json_lines(predictions):
            file.write(json.dumps(line) + "\n")


def _prediction_json_lines(predictions: Predictions) -> Iterator[dict[str, Any]]:
    is_calibrated = predictions.calibration is not None and predictions.logits is not None
    probabilities = predictions.probabilities if is_calibrated else None
    for row, path in enumerate(predictions.paths):
        scores = predictions.scores[row].tolist()
        values = scores if probabilities is None else probabilities[row].tolist()
        yield {
            "path": path,
            "labels": [
                {"label": name, "score": score, "probability": p if is_calibrated else None}
                for name, score, p in zip(predictions.names, scores, values, strict=True)
            ],
        }
    for skipped in predictions.skipped:
        yield {"path": skipped.path, "skipped": skipped.reason}


def _read_predictions_jsonl(path: Path) -> Predictions:
    with path.open(encoding="utf-8-sig") as file:
        lines = [
            _parse_prediction_line(number, text)
            for number, text in enumerate(file, 1)
            if text.strip()
        ]
    read_lines = [line for line in lines if "skipped" not in line]
    names = [label["label"] for label in read_lines[0]["labels"]] if read_lines else []
    scores = np.zeros((len(read_lines), len(names)))
    probabilities = np.zeros_like(scores)
    for row, line in enumerate(read_lines):
        if [label["label"] for label in line["labels"]] != names:
            raise ValueError(f"other labels for {line['path']} than for {read_lines[0]['path']}")
        scores[row] = [label["score"] for label in line["labels"]]
        probabilities[row] = [
            _prediction_probability_or_nan(label["probability"]) for label in line["labels"]
        ]
    calibrated = bool(probabilities.size) and not np.isnan(probabilities).any()
    logits = np.clip(logit(probabilities), -LOGIT_LIMIT, LOGIT_LIMIT).astype(np.float32)
    return Predictions(
        paths=[line["path"] for line in read_lines],
        names=names,
        scores=scores.astype(np.float32),
        logits=logits if calibrated else None,
        calibration=UNRECORDED_CALIBRATION if calibrated else None,
        skipped=tuple(SkippedImage(s["path"], s["skipped"]) for s in lines if "skipped" in s),
    )


def _parse_prediction_line(number: int, text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON on line {number} ({error.msg})") from error
    if not isinstance(line, dict) or "path" not in line or not {"labels", "skipped"} & line.keys():
        raise ValueError(f"no path with labels on line {number}")
    return line


def _prediction_probability_or_nan(probability: float | None) -> float:
    return float("nan") if probability is None else probability


_FORMATS = {
    ".parquet": (_write_predictions_parquet, _read_predictions_parquet),
    ".csv": (_write_predictions_csv, _read_predictions_csv),
    ".jsonl": (_write_predictions_jsonl, _read_predictions_jsonl),
}
