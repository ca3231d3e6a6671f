"""Encode the log-odds of one label in sparse form: some rows, and one value for all other rows.

The log-odds of the rows with at least a given probability are stored. All other rows are *dropped*:
their probability is replaced by its mean. The sum of the probabilities, which is the expected
number of images with the label, therefore does not change, apart from rounding to float32.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import expit, logit

from surelabel.arrays import LOGIT_LIMIT
from surelabel.errors import InputError

SPARSE_LABEL_SCHEMA = pa.schema({"column": pa.int32(), "row": pa.int32(), "logit": pa.float32()})
MAX_DROP_BELOW = 0.5  # highest probability below which rows can be dropped


@dataclass(frozen=True)
class SparseLabel:
    """Log-odds of one label in sparse form.

    Attributes:
        rows: Numbers of the stored rows, increasing, int32, ``(s,)``.
        logits: Log-odds of the stored rows, float32, ``(s,)``.
        default: Log-odds of the dropped rows, below those of all stored rows. If no row was
            dropped, it has no effect.
    """

    rows: npt.NDArray[np.int32]
    logits: npt.NDArray[np.float32]
    default: np.float32


def check_drop_below(drop_below: float) -> None:
    """Check that a probability can be the limit of a sparse form.

    Raises:
        InputError: If the probability is outside (0, 0.5].
    """
    if not 0 < drop_below <= MAX_DROP_BELOW:  # NaN compares as False
        raise InputError(f"drop_below must be in (0, {MAX_DROP_BELOW}]; got {drop_below}.")


def encode_sparse_label(logits: npt.NDArray[np.float32], drop_below: float) -> SparseLabel:
    """Return the sparse form of the log-odds of a label.

    Args:
        logits: Log-odds in [-40, 40], ``(n,)``.
        drop_below: Lowest probability of stored rows, in (0, 0.5].

    Example:
        >>> probabilities = np.array([0.9, 0.001, 0.2, 0.003])
        >>> label = encode_sparse_label(logit(probabilities).astype(np.float32), 0.01)
        >>> label.rows.tolist(), expit(label.default).round(4)
        ([0, 2], np.float32(0.002))
    """
    limit = logit(np.float64(drop_below))
    values = logits.astype(np.float64)
    is_stored = values >= limit
    default = np.float32(-LOGIT_LIMIT)  # without dropped rows
    if not is_stored.all():
        mean = np.mean(expit(values[~is_stored]))
        default = np.maximum(np.float32(logit(mean)), default)
        if default >= limit:  # because of rounding
            default = np.nextafter(np.float32(limit), np.float32(-np.inf))
    rows = np.flatnonzero(is_stored)
    return SparseLabel(rows.astype(np.int32), np.asarray(logits[rows], np.float32), default)


def describe_sparse_label_damage(label: SparseLabel, n_rows: int) -> str | None:
    """Return why the sparse form of a label is invalid, as a clause, or None if it is valid.

    Args:
        label: Sparse form of a label that was read from a file.
        n_rows: Number of rows of the shard.

    Example:
        >>> rows, logits = np.array([0, 7], np.int32), np.array([1, 2], np.float32)
        >>> describe_sparse_label_damage(SparseLabel(rows, logits, np.float32(-9)), 7)
        'row numbers must be in [0, 7)'
    """
    rows, logits = label.rows, label.logits
    if not len(rows):
        return None
    if not 0 <= rows.min() <= rows.max() < n_rows:
        return f"row numbers must be in [0, {n_rows})"
    if not (rows[1:] > rows[:-1]).all():
        return "row numbers must be increasing"
    if not np.isfinite(logits).all():
        return "the log-odds must be finite"
    if len(rows) < n_rows and logits.min() <= label.default:
        return (
            f"the stored log-odds must be above those of the other images, {label.default:g}; got "
            f"{logits.min():g}"
        )
    return None
