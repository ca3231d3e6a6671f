"""Read image columns of Parquet tables: bytes, or the image type of Hugging Face ``datasets``.

Each thread of a process caches the reader of the last table. The reader decodes the image column in
batches of rows, and continues after the last batch. Therefore, rows in ascending order are read
only once.
"""

import os
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.errors import DataError

BATCH_BYTES = 64 * 2**20  # size of a batch of rows, which a reader stores

_cached = threading.local()  # .key and .reader of the table that was read last


class ParquetImages:
    """Reader of one image column of a Parquet table.

    Attributes:
        path: Path of the table, for messages.
        column: Name of the image column.
        n_rows: Number of rows of the table.
    """

    def __init__(self, path: str, source: Any, column: str):
        """Open a table.

        Args:
            path: Path of the table, for messages.
            source: Path or open file of the table.
            column: Name of the image column.

        Raises:
            DataError: If the file is not a Parquet table, or has no image column with this name.
        """
        self._file = open_parquet_file(path, source)
        columns = parquet_image_columns(self._file.schema_arrow)
        if column not in columns:
            raise DataError(
                f"{path} has no image column {column!r}. "
                f"Image columns: {', '.join(map(repr, columns)) or 'none'}."
            )
        self.path, self.column = path, column
        groups = [self._file.metadata.row_group(n) for n in range(self._file.num_row_groups)]
        self._starts = [0]
        for group in groups:
            self._starts.append(self._starts[-1] + group.num_rows)
        self.n_rows = self._starts[-1]
        is_struct = pa.types.is_struct(self._file.schema_arrow.field(column).type)
        self._name = f"{column}.bytes" if is_struct else column
        self._group_bytes = [self._column_bytes(group) for group in groups]
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._cells, self._first, self._group = pa.nulls(0), 0, -1

    def cell(self, row: int) -> bytes:
        """Return the bytes of the image in a row.

        Args:
            row: Row number, counted from 0.

        Raises:
            DataError: If the row does not exist, if its cell is empty, or if the file is damaged.
                The message is the reason, without the path.
        """
        if not 0 <= row < self.n_rows:
            raise DataError(f"the row number must be in [0, {self.n_rows})")
        try:
            while not self._first <= row < self._first + len(self._cells):
                self._read_batch(row)
        except (pa.ArrowException, OSError, StopIteration) as error:
            self._group = -1
            reason = str(error).strip().splitlines()[:1]
            raise DataError(f"damaged table ({''.join(reason)[:200]})") from error
        content: bytes | None = self._cells[row - self._first].as_py()
        if content is None:
            raise DataError("empty cell (null)")
        return content

    def _read_batch(self, row: int) -> None:
        """Read the next batch of the row group that contains a row.

        If the group is not the current one, or the row was in an earlier batch, start the group.
        """
        group = next(n for n, end in enumerate(self._starts[1:]) if row < end)
        first = self._first + len(self._cells)
        if group != self._group or row < first:
            n_rows = self._starts[group + 1] - self._starts[group]
            n_batches = -(-self._group_bytes[group] // BATCH_BYTES)
            self._batches = self._file.iter_batches(
                batch_size=max(1, n_rows // max(1, n_batches)),
                row_groups=[group],
                columns=[self._name],
                use_threads=False,
            )
            self._group, first = group, self._starts[group]
        self._cells = pa.nulls(0)  # free the memory of this batch before the next batch is read
        cells = next(self._batches).column(0)
        self._cells = cells.field("bytes") if pa.types.is_struct(cells.type) else cells
        self._first = first

    def _column_bytes(self, group: Any) -> int:
        columns = (group.column(number) for number in range(group.num_columns))
        return sum(c.total_uncompressed_size for c in columns if c.path_in_schema == self._name)


def open_parquet_file(path: str, source: Any) -> pq.ParquetFile:
    """Open a Parquet table without reading rows.

    Args:
        path: Path of the table, for messages.
        source: Path or open file of the table.

    Raises:
        DataError: If the file is not a Parquet table.
    """
    try:
        return pq.ParquetFile(source, buffer_size=2**20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200].rstrip(".")
        raise DataError(
            f"{path} must be a Parquet table; got: {reason}. Copy the file again, or remove it."
        ) from error


def parquet_image_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that contain bytes, or images of Hugging Face ``datasets``.

    Example:
        >>> parquet_image_columns(pa.schema({"jpg": pa.binary(), "label": pa.int64()}))
        ['jpg']
    """
    return [field.name for field in schema if _is_image_type(field.type)]


def cached_parquet_images(path: str, source: Any, column: str, state: object) -> ParquetImages:
    """Return a reader of an image column, from the cache of this process and thread if possible.

    Args:
        path: Path of the table.
        source: Path of the table, or function that opens it.
        column: Name of the image column.
        state: Size, modification time and inode of the table, or None for an object. A reader of
            another state is not used.

    Raises:
        DataError: If the file is not a Parquet table, or has no image column with this name.
    """
    key = (os.getpid(), path, column, state)
    if getattr(_cached, "key", None) != key:
        _cached.key = None
        opened = source() if callable(source) else source
        _cached.reader = ParquetImages(path, opened, column)
        _cached.key = key
    reader: ParquetImages = _cached.reader
    return reader


def _is_image_type(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        names = {field.name: field.type for field in kind}
        return set(names) == {"bytes", "path"} and _is_image_type(names["bytes"])
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
