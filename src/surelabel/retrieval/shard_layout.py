"""Define the layout of the files of a shard: file names, and types and shapes of arrays.

A row is an image, and all files of a shard have the same rows. Files are never modified. A shard of
version 2 consists of these files:

    rows-000.parquet     path, bytes, mtime_ns, hash, date, width, height of each image
    high-000.npy         high 16 bits of the sort keys, uint16, (c, n)
    low-000.npy          low 16 bits of the sort keys, uint16, (c, n)
    first-000.npy        rows with the largest keys, in order, int32, (c, min(n, 4096))
    last-000.npy         rows with the smallest keys, in order, int32, (c, min(n, 4096))
    checksums-000.npy    checksums of the other arrays for each label, uint32, (5, c)
    steps-000.parquet    column, score, logit of each step of the step tables; optional
    scores-000.npy       raw scores of the labels that need them, float32, (m, n); optional
    features-000.npy     image features, float16, (n, d); optional
    ann-000.usearch      graph for approximate search of the features; optional

A shard in *sparse form* has the following file instead of the arrays of keys, rows, checksums and
raw scores, and instead of the step tables; see `surelabel.retrieval.sparse_labels`:

    sparse-000.parquet   column, row, logit of each stored log-odds, one row group for each label

The keys of a label are its log-odds, or its raw scores if it has a step table; see
`surelabel.retrieval.label_encoding`. Paths are stored relative to the root of the index.

Version 1 has absolute paths without date, width and height. It stores three arrays ``(c, n)``: the
log-odds in ``logits-000.npy``, the raw scores in ``scores-000.npy``, and all rows by decreasing
log-odds in ``order-000.npy``. Only the logits and the order have checksums.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

INDEX_VERSION = 2
COLUMN_LISTS = ("step_columns", "score_columns", "unscored_columns")
ORDERED_ROWS = 4096  # rows at each end of a label that are stored in order


class ArrayLayout(NamedTuple):
    """Data type and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, int]


@dataclass(frozen=True)
class ShardLayout:
    """Version, number of rows and encodings of the labels of a shard.

    Attributes:
        n_rows: Number of all rows, n, including removed rows.
        version: Version of the index that contains the shard.
        step_columns: Columns of the labels that have a step table, increasing.
        score_columns: Columns of the labels whose raw scores are stored separately, increasing.
        unscored_columns: Columns of the labels without raw scores, increasing.
        sparse_defaults: Log-odds of the dropped rows of each label, float32 values, length c. If
            the shard is not in sparse form, the value is None.
        sparse_counts: Number of stored rows of each label, length c. If the shard is not in sparse
            form, the value is None.
    """

    n_rows: int
    version: int = INDEX_VERSION
    step_columns: tuple[int, ...] = ()
    score_columns: tuple[int, ...] = ()
    unscored_columns: tuple[int, ...] = ()
    sparse_defaults: tuple[float, ...] | None = None
    sparse_counts: tuple[int, ...] | None = None

    @property
    def is_sparse(self) -> bool:
        """Return whether the shard is in sparse form."""
        return self.sparse_counts is not None

    @property
    def sparse_fields(self) -> dict[str, tuple[float, ...]]:
        """Return ``sparse_defaults`` and ``sparse_counts`` by name.

        If the shard is not in sparse form, the mapping is empty.
        """
        if self.sparse_defaults is None or self.sparse_counts is None:
            return {}
        return {"sparse_defaults": self.sparse_defaults, "sparse_counts": self.sparse_counts}

    @property
    def checksummed(self) -> tuple[str, ...]:
        """Return the names of the arrays with checksums, in the order of their checksum lines."""
        if self.is_sparse:
            return ()
        return (
            ("logits", "order") if self.version == 1 else ("high", "low", "first", "last", "scores")
        )

    @property
    def n_ordered(self) -> int:
        """Return the number of rows at each end of a label that are stored in order."""
        return min(self.n_rows, ORDERED_ROWS)

    @property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """Return the lists of label columns by name, such as ``step_columns``.

        A label whose log-odds are its raw scores is in no list.
        """
        return {name: getattr(self, name) for name in COLUMN_LISTS}

    def arrays(self, n_labels: int) -> dict[str, ArrayLayout]:
        """Return the layout of each array of labels, and of the checksums, by name.

        An array has one line for each label; ``scores`` has one for each of ``score_columns``.
        A shard in sparse form has no such array.

        Args:
            n_labels: Number of labels of the index, c.
        """
        if self.is_sparse:
            return {}
        full, ordered = (n_labels, self.n_rows), (n_labels, self.n_ordered)
        shapes: dict[str, tuple[Any, tuple[int, int]]]
        if self.version == 1:
            shapes = {"logits": (np.float32, full), "scores": (np.float32, full)}
            shapes |= {"order": (np.int32, full)}
        else:
            shapes = {"high": (np.uint16, full), "low": (np.uint16, full)}
            shapes |= {"first": (np.int32, ordered), "last": (np.int32, ordered)}
        if self.version > 1 and self.score_columns:
            shapes["scores"] = (np.float32, (len(self.score_columns), self.n_rows))
        shapes["checksums"] = (np.uint32, (len(self.checksummed), n_labels))
        return {
            name: ArrayLayout(np.dtype(dtype), shape) for name, (dtype, shape) in shapes.items()
        }

    def array_names(self) -> list[str]:
        """Return the names of the arrays of `arrays`."""
        return [*self.arrays(0)]

    def table_names(self) -> list[str]:
        """Return the names of the Parquet tables of the shard."""
        optional = {"steps": bool(self.step_columns), "sparse": self.is_sparse}
        return ["rows", *(name for name, is_present in optional.items() if is_present)]

    def required_files(self, number: int) -> set[str]:
        """Return the names of the files of a shard, except those of the features and the graph."""
        names = {f"{name}-{number:03}.npy" for name in self.array_names()}
        return names | {f"{name}-{number:03}.parquet" for name in self.table_names()}
