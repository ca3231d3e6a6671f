"""Compute masks of the rows of a shard that satisfy a filter: path, date, size or probability."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import expit

from surelabel.errors import InputError
from surelabel.retrieval.file_state import is_valid_file_state_path
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.label_table import IndexLabelTable, RowMask
from surelabel.retrieval.query_resolution import LabelBound
from surelabel.retrieval.query_terms import FileFilter, PathFilter, QueryFilter, date_period
from surelabel.retrieval.shards import Shard

_FILTER_BLOCK_ROWS = 1 << 16  # log-odds that are float64 at once


def filter_mask(
    shard: Shard, table: IndexLabelTable, root: IndexRoot, query_filter: QueryFilter | LabelBound
) -> RowMask:
    """Return a mask of the rows of a shard that satisfy a filter, ``(n,)``.

    Removed rows are included. Rows whose date, width or height is unknown satisfy no filter of this
    field.

    Args:
        shard: Shard of the index.
        table: Log-odds of the shard.
        root: Root folder of the stored paths.
        query_filter: Filter.

    Raises:
        InputError: If the filter needs date, width or height, and the shard has version 1.
        DataError: If a file of the shard is damaged.
    """
    if isinstance(query_filter, LabelBound):
        return _reaches_label_bound(table, query_filter)
    if isinstance(query_filter, PathFilter):
        return _matches_path(shard, root, query_filter.pattern)
    assert isinstance(query_filter, FileFilter)
    if not shard.has_file_metadata:
        raise InputError(
            f"{query_filter} needs the dates and sizes of images, which an index of version 1 does "
            f"not contain. Run `surelabel index {shard.folder} --compact` to add these values."
        )
    return _satisfies_comparison(shard, query_filter)


def _reaches_label_bound(table: IndexLabelTable, bound: LabelBound) -> RowMask:
    is_at_least = np.empty(table.n_rows, bool)
    for start in range(0, table.n_rows, _FILTER_BLOCK_ROWS):
        rows = slice(start, start + _FILTER_BLOCK_ROWS)
        probabilities = expit(table.logits(bound.column, rows).astype(np.float64))
        is_at_least[rows] = probabilities >= bound.bound
    return is_at_least if bound.is_minimum else ~is_at_least


def _matches_path(shard: Shard, root: IndexRoot, pattern: str) -> RowMask:
    """Return a mask of the rows whose stored path matches a pattern.

    If the pattern starts with the path of the root, in any case, this part is removed.
    """
    if not is_valid_file_state_path(pattern):  # stored paths are valid Unicode
        return np.zeros(shard.n_rows, bool)
    prefix = root.current.rstrip("/\\").replace("\\", "/") + "/"
    if pattern[: len(prefix)].replace("\\", "/").lower() == prefix.lower():
        pattern = pattern[len(prefix) :]
    like = re.sub(r"[\\%_]", r"\\\g<0>", pattern).replace("*", "%").replace("?", "_")
    if shard.has_file_metadata:
        return shard.path_masks.of_pattern(like)
    stored_prefix = root.stored.rstrip("/") + "/"  # version 1 has absolute paths
    return shard.path_masks.of_pattern(like, stored_prefix)


def _satisfies_comparison(shard: Shard, query_filter: FileFilter) -> RowMask:
    """Return a mask of the rows that satisfy a comparison, False for rows without the value."""
    column = shard.read_file_columns([query_filter.field])[query_filter.field]
    first: object
    last: object
    if query_filter.field == "date":
        first, last = (
            pa.scalar(end, pa.timestamp("us")) for end in date_period(query_filter.value)
        )
        column = column.cast(pa.timestamp("us"))
    else:
        first = last = pa.scalar(int(query_filter.value), pa.int64())
        column = column.cast(pa.int64())
    compared = {
        "<": lambda: pc.less(column, first),
        "<=": lambda: pc.less_equal(column, last),
        "=": lambda: pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last)),
        ">=": lambda: pc.greater_equal(column, first),
        ">": lambda: pc.greater(column, last),
    }
    return _mask_of_column(compared[query_filter.comparison]())


def _mask_of_column(column: pa.ChunkedArray) -> RowMask:
    filled = pc.fill_null(column, False)
    parts: Sequence[RowMask] = [chunk.to_numpy(zero_copy_only=False) for chunk in filled.chunks]
    return np.concatenate([np.empty(0, bool), *parts])
