"""Write the labels of a shard in sparse form."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.files import atomic_file
from surelabel.retrieval.shard_layout import INDEX_VERSION, ShardLayout
from surelabel.retrieval.sparse_labels import SPARSE_LABEL_SCHEMA, encode_sparse_label


class SparseLabelWriter:
    """Writer of the sparse labels of a new shard, one label after the other.

    A temporary file with one row group for each label is written, and renamed when the stack of
    contexts is closed without an error.

    Args:
        stack: Stack of the contexts of the open file.
        folder: Folder of the index.
        number: Number of the new shard.
        n_rows: Number of rows.
        drop_below: Lowest probability of stored rows, in (0, 0.5].
    """

    def __init__(
        self, stack: ExitStack, folder: Path, number: int, n_rows: int, drop_below: float
    ) -> None:
        self._n_rows, self._drop_below = n_rows, drop_below
        self._defaults, self._counts = list[float](), list[int]()
        temporary = stack.enter_context(atomic_file(folder / f"sparse-{number:03}.parquet"))
        self._file = stack.enter_context(
            pq.ParquetWriter(
                temporary,
                SPARSE_LABEL_SCHEMA,
                compression="zstd",
                write_page_checksum=True,
                write_statistics=False,
                use_dictionary=["column"],
                column_encoding={"row": "DELTA_BINARY_PACKED", "logit": "BYTE_STREAM_SPLIT"},
            )
        )

    @property
    def layout(self) -> ShardLayout:
        """Return the layout of the shard with the labels that were written."""
        return ShardLayout(
            self._n_rows,
            INDEX_VERSION,
            unscored_columns=tuple(range(len(self._defaults))),
            sparse_defaults=tuple(self._defaults),
            sparse_counts=tuple(self._counts),
        )

    def write(self, logits: npt.NDArray[np.float32]) -> None:
        """Write the log-odds of the next label, ``(n,)``."""
        label = encode_sparse_label(logits, self._drop_below)
        columns = [np.full_like(label.rows, len(self._counts)), label.rows, label.logits]
        self._file.write_table(
            pa.table(columns, schema=SPARSE_LABEL_SCHEMA), row_group_size=max(self._n_rows, 1)
        )
        self._defaults.append(float(label.default))
        self._counts.append(len(label.rows))
