"""Convert Parquet tables to predictions, and check predictions that were read."""

import csv
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surelabel.arrays import LOGIT_LIMIT, Flags
from surelabel.data.prediction_writing import (
    LOGIT,
    PARQUET_METADATA_KEY,
    SCORE,
    SHOWN,
    UNCERTAINTY,
)
from surelabel.file_readers import parse_json
from surelabel.records import Predictions, SkippedImage

PREDICTION_READ_ERRORS = (
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


def predictions_of_table(table: pa.Table) -> Predictions:
    """Return the predictions in a Parquet table of :func:`write_predictions`.

    Args:
        table: Table with the metadata of the file. Columns that are not part of predictions are
            ignored.

    Raises:
        ValueError: If the table has no metadata of surelabel. A table with other columns or types
            raises one of ``PREDICTION_READ_ERRORS``.
    """
    schema_metadata = table.schema.metadata or {}
    if PARQUET_METADATA_KEY not in schema_metadata:
        raise ValueError("a Parquet file without the metadata of surelabel")
    metadata = parse_json(schema_metadata[PARQUET_METADATA_KEY])
    scores = stack_prediction_columns(table, SCORE, metadata["names"])
    thresholds = metadata.get("thresholds")
    return Predictions(
        paths=table["path"].to_pylist(),
        names=metadata["names"],
        scores=np.empty((table.num_rows, 0), np.float32) if scores is None else scores,
        logits=stack_prediction_columns(table, LOGIT, metadata["names"]),
        calibration=metadata["calibration"],
        model=metadata["model"],
        skipped=tuple(SkippedImage(*skipped) for skipped in metadata["skipped"]),
        uncertainty=stack_prediction_columns(table, UNCERTAINTY, metadata["names"]),
        uncertainty_kind=metadata.get("uncertainty_kind"),
        shown=_stack_shown_columns(table, metadata["names"]),
        thresholds=None if thresholds is None else np.array(thresholds, dtype=float),
        engine=metadata.get("engine"),
    )


def stack_prediction_columns(
    table: pa.Table, prefix: str, names: Sequence[str]
) -> npt.NDArray[np.float32] | None:
    """Return the columns with a prefix as ``(n, c)``, or None if there is no such column.

    Args:
        table: Table with one row per image.
        prefix: Prefix of the columns, such as ``score:``.
        names: Labels, length c.
    """
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


def check_read_predictions(predictions: Predictions) -> None:
    """Check the types and ranges that a damaged file can violate.

    Raises:
        ValueError: If a path or label is not valid text, if a label occurs twice, or if a score,
            logit, uncertainty or threshold is not finite or out of range.
    """
    skipped = [text for image in predictions.skipped for text in (image.path, image.reason)]
    texts = [*predictions.paths, *skipped, predictions.model]
    texts += [predictions.calibration or "", predictions.engine or ""]
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


def first_line_of_read_error(error: Exception) -> str:
    """Return the first line of the message of an error, at most 300 characters, no full stop."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return line if len(line) <= 300 else f"{line[:300]}…"
