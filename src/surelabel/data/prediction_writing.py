"""Write prediction files in Parquet, CSV or JSON lines format, one block of images at a time."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from surelabel.data.spreadsheet_cells import spreadsheet_safe_cell
from surelabel.errors import InputError
from surelabel.files import atomic_file, escape_non_utf8_file_path
from surelabel.records import Predictions, SkippedImage

# prefixes of the columns of a label
SCORE, LOGIT, PROBABILITY, UNCERTAINTY = "score:", "logit:", "probability:", "uncertainty:"
SHOWN = "shown:"
PARQUET_METADATA_KEY = b"surelabel"
ROWS_PER_GROUP = 8192  # minimum number of rows of a row group in a Parquet file, except the last

BlockWriter = Callable[[Iterator[Predictions], Sequence[SkippedImage], Path], None]


def write_predictions(
    predictions: Predictions, path: str | Path, *, spreadsheet_safe: bool = False
) -> None:
    """Write predictions to a file; an existing file is replaced when the new file is complete.

    - A ``.parquet`` file contains all predictions except the image vectors, with one row per
      image. The columns are ``path`` and, for each label NAME, ``score:NAME``. If available, there
      are also the columns ``logit:NAME``, ``probability:NAME`` of calibrated logits,
      ``uncertainty:NAME``, and the boolean ``shown:NAME`` of selected labels. Labels, calibration,
      model, version, skipped images and, if available, ``uncertainty_kind`` and the ``thresholds``
      of the labels are stored as JSON under the key ``surelabel`` of the schema metadata.
    - A ``.csv`` file has the columns of numbers of the Parquet file and the column ``skipped``. It
      also has the column ``uncertainty_kind`` if there is an uncertainty, and the column ``shown``
      if labels were selected. A cell of ``shown`` is a JSON list of the shown labels, the most
      probable first. In the row of a skipped image, ``skipped`` contains the reason, and only
      ``path`` is filled besides. These rows follow the rows of the other images.
    - A ``.jsonl`` file has one line per image,
      ``{"path": …, "labels": [{"label": …, "score": …, "probability": …}, …]}``. The probability
      is null if the predictions are uncalibrated. With an uncertainty, each label has a key
      ``uncertainty``, and each line has a key ``uncertainty_kind``. If labels were selected, each
      line has a key ``shown`` with a list of the shown labels. The line of a skipped image is
      ``{"path": …, "skipped": reason}``.

    Args:
        predictions: Predictions of n images.
        path: Path of a file with suffix ``.parquet``, ``.csv`` or ``.jsonl``.
        spreadsheet_safe: If True, paths and reasons in a CSV file that a spreadsheet program would
            execute as a formula are prefixed with an apostrophe; see ``FORMULA_STARTS``.
            :func:`read_predictions` returns these texts with the apostrophe.

    Raises:
        InputError: If the suffix is not supported, if ``spreadsheet_safe`` is True for another
            format than CSV, if a score, logit or uncertainty is not finite, or if an uncertainty
            is negative.
        DataError: If the file cannot be written.
    """
    write_prediction_blocks(
        [predictions], path, skipped=predictions.skipped, spreadsheet_safe=spreadsheet_safe
    )


def write_prediction_blocks(
    blocks: Iterable[Predictions],
    path: str | Path,
    *,
    skipped: Sequence[SkippedImage],
    spreadsheet_safe: bool = False,
) -> None:
    """Write the predictions of blocks of images to one file, as :func:`write_predictions` does.

    Only a few thousand images, or one block if it is larger, are in memory at a time.

    Args:
        blocks: Predictions of one recognizer, at least one block.
        path: Path of a file with suffix ``.parquet``, ``.csv`` or ``.jsonl``.
        skipped: Images of all blocks that could not be read. The skipped images of the blocks
            themselves are not written.
        spreadsheet_safe: See :func:`write_predictions`.

    Raises:
        InputError: For the reasons of :func:`write_predictions`.
        DataError: If the file cannot be written.
    """
    write = _block_writer(path)
    valid_blocks = map(check_finite_predictions, blocks)
    if spreadsheet_safe:
        _check_spreadsheet_safe_suffix(path)
        valid_blocks = map(_with_spreadsheet_safe_paths, valid_blocks)
        skipped = [
            SkippedImage(spreadsheet_safe_cell(image.path), spreadsheet_safe_cell(image.reason))
            for image in skipped
        ]
    with atomic_file(path) as temporary:
        write(valid_blocks, skipped, temporary)


def check_predictions_suffix(path: str | Path) -> None:
    """Check that ``write_predictions`` supports the suffix of a path.

    Raises:
        InputError: If the suffix is not ``.parquet``, ``.csv`` or ``.jsonl``.
    """
    _block_writer(path)


def _block_writer(path: str | Path) -> BlockWriter:
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise InputError(
            f"The suffix of a prediction file must be one of {', '.join(_WRITERS)}; got "
            f"{str(path)!r}. Use one of these suffixes."
        )
    return _WRITERS[suffix]


def check_finite_predictions(predictions: Predictions) -> Predictions:
    """Return the predictions, after a check that all scores and logits are finite.

    Args:
        predictions: Predictions to write.

    Raises:
        InputError: If a score, logit or uncertainty is not finite, or an uncertainty is negative.
    """
    for kind, values, minimum in (
        ("score", predictions.scores, -np.inf),
        ("logit", predictions.logits, -np.inf),
        ("uncertainty", predictions.uncertainty, 0.0),
    ):
        if values is None:
            continue
        is_valid = np.isfinite(values) & (values >= minimum)
        if not is_valid.all():
            row, column = np.argwhere(~is_valid)[0]
            raise InputError(
                f"Every {kind} must be finite{' and at least 0' * (minimum == 0)}; got "
                f"{values[row, column]} for {predictions.names[column]!r} in "
                f"{predictions.paths[row]}. Check the recognizer and this image."
            )
    return predictions


def _check_spreadsheet_safe_suffix(path: str | Path) -> None:
    if Path(path).suffix.lower() != ".csv":
        raise InputError(
            f"spreadsheet_safe applies to .csv files only; got {str(path)!r}. Use the suffix "
            ".csv, or remove spreadsheet_safe."
        )


def _with_spreadsheet_safe_paths(predictions: Predictions) -> Predictions:
    """Return predictions with spreadsheet-safe paths; the names of columns are always safe."""
    return replace(predictions, paths=[spreadsheet_safe_cell(path) for path in predictions.paths])


def _prediction_table(predictions: Predictions) -> pa.Table:
    """Return a table with the column ``path`` and the numeric columns of each label."""
    parts: dict[str, npt.NDArray[Any]] = {SCORE: predictions.scores}
    if predictions.logits is not None:
        parts[LOGIT] = predictions.logits
    if predictions.calibration is not None and predictions.logits is not None:
        parts[PROBABILITY] = predictions.probabilities
    if predictions.uncertainty is not None:
        parts[UNCERTAINTY] = predictions.uncertainty
    columns = {"path": pa.array(map(escape_non_utf8_file_path, predictions.paths), pa.string())}
    for index, name in enumerate(predictions.names):
        for prefix, values in parts.items():
            columns[prefix + name] = pa.array(values[:, index].astype(np.float32))
    return pa.table(columns)


def _write_parquet_blocks(
    blocks: Iterator[Predictions], skipped: Sequence[SkippedImage], path: Path
) -> None:
    first = next(blocks)
    metadata = prediction_table_metadata(first, skipped)
    tables = map(prediction_parquet_table, itertools.chain([first], blocks))
    table = next(tables)
    schema = table.schema.with_metadata({PARQUET_METADATA_KEY: json.dumps(metadata)})
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for other in tables:
            if table.num_rows >= ROWS_PER_GROUP:
                writer.write_table(table.cast(schema))
                table = other
            else:
                table = pa.concat_tables([table, other])
        writer.write_table(table.cast(schema))


def prediction_table_metadata(
    predictions: Predictions, skipped: Sequence[SkippedImage]
) -> dict[str, Any]:
    """Return the metadata of a Parquet file of predictions, which is stored as JSON.

    Args:
        predictions: Predictions, or a block of them.
        skipped: Images that could not be read, each with the reason.
    """
    metadata = {
        "names": list(predictions.names),
        "calibration": predictions.calibration,
        "model": predictions.model,
        "version": version("surelabel"),
        "skipped": [[escape_non_utf8_file_path(s.path), s.reason] for s in skipped],
    }
    if predictions.uncertainty_kind is not None:
        metadata["uncertainty_kind"] = predictions.uncertainty_kind
    if predictions.engine is not None:
        metadata["engine"] = predictions.engine
    if predictions.thresholds is not None:
        metadata["thresholds"] = predictions.thresholds.tolist()
    return metadata


def prediction_parquet_table(predictions: Predictions) -> pa.Table:
    """Return a table of predictions, with a boolean column per label if labels were selected.

    Args:
        predictions: Predictions of n images, which are the n rows of the table.
    """
    table = _prediction_table(predictions)
    if predictions.shown is not None:
        for name, flags in zip(predictions.names, predictions.shown.T, strict=True):
            table = table.append_column(SHOWN + name, pa.array(flags, pa.bool_()))
    return table


def _write_csv_blocks(
    blocks: Iterator[Predictions], skipped: Sequence[SkippedImage], path: Path
) -> None:
    tables = map(_prediction_csv_table, blocks)
    table = next(tables)
    schema = table.schema.append(pa.field("skipped", pa.string()))
    skipped_columns: dict[str, pa.Array] = {
        field.name: pa.nulls(len(skipped), field.type) for field in schema
    }
    skipped_columns["path"] = pa.array(
        [escape_non_utf8_file_path(s.path) for s in skipped], pa.string()
    )
    skipped_columns["skipped"] = pa.array([s.reason for s in skipped], pa.string())
    with pacsv.CSVWriter(path, schema) as writer:
        for part in itertools.chain([table], tables):
            writer.write_table(part.append_column("skipped", pa.nulls(part.num_rows, pa.string())))
        writer.write_table(pa.table(skipped_columns))


def _prediction_csv_table(predictions: Predictions) -> pa.Table:
    """Return a table of predictions, with the text columns ``uncertainty_kind`` and ``shown``."""
    table = _prediction_table(predictions)
    if predictions.uncertainty_kind is not None:
        kinds = [predictions.uncertainty_kind] * len(predictions)
        table = table.append_column("uncertainty_kind", pa.array(kinds, pa.string()))
    if predictions.shown is not None:
        lists = [json.dumps(labels, ensure_ascii=False) for labels in _shown_labels(predictions)]
        table = table.append_column("shown", pa.array(lists, pa.string()))
    return table


def _shown_labels(predictions: Predictions) -> Iterator[list[str]]:
    """Yield the shown labels of each image, the most probable first."""
    for columns in shown_label_columns(predictions):
        yield [predictions.names[column] for column in columns]


def shown_label_columns(predictions: Predictions) -> Iterator[list[int]]:
    """Yield the columns of the shown labels of each image, the most probable first.

    Without calibrated probabilities, the label with the highest score is the first.

    Args:
        predictions: Predictions with the mask of the shown labels.
    """
    assert predictions.shown is not None
    is_calibrated = predictions.calibration is not None and predictions.logits is not None
    values = predictions.probabilities if is_calibrated else predictions.scores
    for row, flags in enumerate(predictions.shown):
        ranked = np.lexsort((-predictions.scores[row], -values[row]))
        yield ranked[flags[ranked]].tolist()


def _write_jsonl_blocks(
    blocks: Iterator[Predictions], skipped: Sequence[SkippedImage], path: Path
) -> None:
    with path.open("w", encoding="utf-8") as file:
        for block in blocks:
            for line in _prediction_json_lines(block):
                file.write(json.dumps(line) + "\n")
        for image in skipped:
            file.write(json.dumps({"path": image.path, "skipped": image.reason}) + "\n")


def _prediction_json_lines(predictions: Predictions) -> Iterator[dict[str, Any]]:
    is_calibrated = predictions.calibration is not None and predictions.logits is not None
    probabilities = predictions.probabilities if is_calibrated else None
    shown = None if predictions.shown is None else _shown_labels(predictions)
    for row, path in enumerate(predictions.paths):
        scores = predictions.scores[row].tolist()
        values = scores if probabilities is None else probabilities[row].tolist()
        labels: list[dict[str, Any]] = [
            {"label": name, "score": score, "probability": p if is_calibrated else None}
            for name, score, p in zip(predictions.names, scores, values, strict=True)
        ]
        line: dict[str, Any] = {"path": path, "labels": labels}
        if predictions.uncertainty is not None:
            line["uncertainty_kind"] = predictions.uncertainty_kind
            for label, uncertainty in zip(
                labels, predictions.uncertainty[row].tolist(), strict=True
            ):
                label["uncertainty"] = uncertainty
        if shown is not None:
            line["shown"] = next(shown)
        yield line


_WRITERS: dict[str, BlockWriter] = {
    ".parquet": _write_parquet_blocks,
    ".csv": _write_csv_blocks,
    ".jsonl": _write_jsonl_blocks,
}
