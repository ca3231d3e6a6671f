"""Predictions on disk: Parquet, CSV or JSON lines, by the suffix of the file."""

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

from surelabel.errors import DataError, InputError
from surelabel.files import new_file, utf8
from surelabel.records import LOGIT_LIMIT, Predictions, Skipped

SCORE, LOGIT, PROBABILITY = "score:", "logit:", "probability:"  # prefixes of the columns of a name
UNTOLD = "calibrated; the file does not say how"  # CSV and JSON lines keep no more

_METADATA = b"surelabel"


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write predictions; an older file of that name stays until the new one is whole.

    ``.parquet`` keeps everything but the image vectors: a row a picture, with its ``path``
    and, for each label NAME, ``score:NAME``, ``logit:NAME`` where there are logits and
    ``probability:NAME`` where they are calibrated; names, calibration, model, version and
    skipped pictures are JSON under ``surelabel`` in the metadata of the schema.
    ``.csv`` has the same columns and one more, ``skipped``: the reason, in the rows of
    skipped pictures, whose numbers are empty. ``.jsonl`` has a line a picture,
    ``{"path": …, "labels": [{"label": …, "score": …, "probability": …}, …]}``, the
    probability null where nothing calibrated it, or ``{"path": …, "skipped": reason}``.

    Args:
        predictions: What to write.
        path: A file whose suffix is ``.parquet``, ``.csv`` or ``.jsonl``.

    Raises:
        InputError: another suffix, or a number that is not finite.
        DataError: the place cannot be written.
    """
    write, _ = _format_of(path)
    for kind, values in (("score", predictions.scores), ("logit", predictions.logits)):
        if values is not None and not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(
                f"every {kind} must be finite. Got {values[row, column]} for "
                f"{predictions.names[column]!r} in {predictions.paths[row]}. Predict again."
            )
    with new_file(path) as temporary:
        write(predictions, temporary)


def read_predictions(path: str | Path) -> Predictions:
    """Read predictions that :func:`write_predictions` wrote.

    CSV does not keep the model, nor JSON lines the logits: there they are made from the
    probabilities, and close to 1 lose digits. In both, ``calibration`` only tells that
    there was one.

    Args:
        path: A file whose suffix is ``.parquet``, ``.csv`` or ``.jsonl``.

    Raises:
        InputError: another suffix.
        DataError: the file is missing, damaged, or holds something else.
    """
    _, read = _format_of(path)
    try:
        return read(Path(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{path} must hold predictions of surelabel. Got: {_first_line(error)}. Write it "
            f"again, with `surelabel tag PICTURES --out {Path(path).name}`."
        ) from error


def check_suffix(path: str | Path) -> None:
    """Refuse what ``write_predictions`` would refuse for its name, before any work is done.

    Raises:
        InputError: the suffix is not ``.parquet``, ``.csv`` or ``.jsonl``.
    """
    _format_of(path)


def _format_of(
    path: str | Path,
) -> tuple[Callable[[Predictions, Path], None], Callable[[Path], Predictions]]:
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(
            f"predictions are written as {', '.join(_FORMATS)}. Got {str(path)!r}. Give the file "
            "one of these suffixes."
        )
    return _FORMATS[suffix]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _columns(predictions: Predictions) -> dict[str, pa.Array]:
    """``path`` and the columns of each name, side by side."""
    parts: dict[str, npt.NDArray[Any]] = {SCORE: predictions.scores}
    if predictions.logits is not None:
        parts[LOGIT] = predictions.logits
    if predictions.calibration is not None and predictions.logits is not None:
        parts[PROBABILITY] = predictions.probabilities
    columns = {"path": pa.array(map(utf8, predictions.paths), pa.string())}
    for place, name in enumerate(predictions.names):
        for prefix, values in parts.items():
            columns[prefix + name] = pa.array(values[:, place].astype(np.float32))
    return columns


def _stacked(table: pa.Table, prefix: str, names: Sequence[str]) -> npt.NDArray[np.float32] | None:
    """The columns of a prefix, ``(n, c)``; None where the file has none."""
    if not any(column.startswith(prefix) for column in table.column_names):
        return None
    values = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        values[:, place] = table[prefix + name].to_numpy()
    return values


def _write_parquet(predictions: Predictions, path: Path) -> None:
    about = {
        "names": list(predictions.names),
        "calibration": predictions.calibration,
        "model": predictions.model,
        "version": version("surelabel"),
        "skipped": [[utf8(s.path), s.reason] for s in predictions.skipped],
    }
    table = pa.table(_columns(predictions)).replace_schema_metadata({_METADATA: json.dumps(about)})
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _read_parquet(path: Path) -> Predictions:
    with pa.OSFile(str(path)) as file:
        table = pq.read_table(file, page_checksum_verification=True)
    metadata = table.schema.metadata or {}
    if _METADATA not in metadata:
        raise ValueError("a Parquet file of something else")
    about = json.loads(metadata[_METADATA])
    scores = _stacked(table, SCORE, about["names"])
    return Predictions(
        paths=table["path"].to_pylist(),
        names=about["names"],
        scores=np.empty((table.num_rows, 0), np.float32) if scores is None else scores,
        logits=_stacked(table, LOGIT, about["names"]),
        calibration=about["calibration"],
        model=about["model"],
        skipped=tuple(Skipped(*skipped) for skipped in about["skipped"]),
    )


def _write_csv(predictions: Predictions, path: Path) -> None:
    columns = _columns(predictions)
    count, skipped = len(predictions.skipped), predictions.skipped
    table = pa.table(columns | {"skipped": pa.nulls(len(predictions), pa.string())})
    lost = {name: pa.nulls(count, column.type) for name, column in columns.items()} | {
        "path": pa.array([utf8(s.path) for s in skipped], pa.string()),
        "skipped": pa.array([s.reason for s in skipped], pa.string()),
    }
    pacsv.write_csv(pa.concat_tables([table, pa.table(lost)]), path)


def _read_csv(path: Path) -> Predictions:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    names = [column.removeprefix(SCORE) for column in header if column.startswith(SCORE)]
    if header[:1] != ["path"] or header[-1:] != ["skipped"]:
        raise ValueError("a first line without path, score:NAME … and skipped")
    types = {name: pa.string() if name in ("path", "skipped") else pa.float32() for name in header}
    table = pacsv.read_csv(
        path,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(column_types=types, null_values=[""]),
    )
    reasons = table["skipped"].to_pylist()
    read = table.filter(pa.array([not reason for reason in reasons]))
    skipped = [Skipped(p, r) for p, r in zip(table["path"].to_pylist(), reasons, strict=True) if r]
    if any(read[column].null_count for column in header[:-1]):
        raise ValueError("an empty cell in the row of a picture that was not skipped")
    scores = _stacked(read, SCORE, names)
    calibrated = any(column.startswith(PROBABILITY) for column in header)
    return Predictions(
        paths=read["path"].to_pylist(),
        names=names,
        scores=np.empty((read.num_rows, 0), np.float32) if scores is None else scores,
        logits=_stacked(read, LOGIT, names),
        calibration=UNTOLD if calibrated else None,
        skipped=tuple(skipped),
    )


def _write_jsonl(predictions: Predictions, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(predictions):
            file.write(json.dumps(line) + "\n")


def _lines(predictions: Predictions) -> Iterator[dict[str, Any]]:
    known = predictions.calibration is not None and predictions.logits is not None
    probabilities = predictions.probabilities if known else None
    for row, path in enumerate(predictions.paths):
        scores = predictions.scores[row].tolist()
        sure = scores if probabilities is None else probabilities[row].tolist()
        yield {
            "path": path,
            "labels": [
                {"label": name, "score": score, "probability": p if known else None}
                for name, score, p in zip(predictions.names, scores, sure, strict=True)
            ],
        }
    for skipped in predictions.skipped:
        yield {"path": skipped.path, "skipped": skipped.reason}


def _read_jsonl(path: Path) -> Predictions:
    with path.open(encoding="utf-8-sig") as file:
        lines = [_loaded(number, text) for number, text in enumerate(file, 1) if text.strip()]
    read = [line for line in lines if "skipped" not in line]
    names = [label["label"] for label in read[0]["labels"]] if read else []
    scores = np.zeros((len(read), len(names)))
    probabilities = np.zeros_like(scores)
    for row, line in enumerate(read):
        if [label["label"] for label in line["labels"]] != names:
            raise ValueError(f"other labels for {line['path']} than for {read[0]['path']}")
        scores[row] = [label["score"] for label in line["labels"]]
        probabilities[row] = [_number(label["probability"]) for label in line["labels"]]
    calibrated = bool(probabilities.size) and not np.isnan(probabilities).any()
    logits = np.clip(logit(probabilities), -LOGIT_LIMIT, LOGIT_LIMIT).astype(np.float32)
    return Predictions(
        paths=[line["path"] for line in read],
        names=names,
        scores=scores.astype(np.float32),
        logits=logits if calibrated else None,
        calibration=UNTOLD if calibrated else None,
        skipped=tuple(Skipped(s["path"], s["skipped"]) for s in lines if "skipped" in s),
    )


def _loaded(number: int, text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON on line {number} ({error.msg})") from error
    if not isinstance(line, dict) or "path" not in line or not {"labels", "skipped"} & line.keys():
        raise ValueError(f"no path with labels on line {number}")
    return line


def _number(probability: float | None) -> float:
    return float("nan") if probability is None else probability


_FORMATS = {
    ".parquet": (_write_parquet, _read_parquet),
    ".csv": (_write_csv, _read_csv),
    ".jsonl": (_write_jsonl, _read_jsonl),
}
