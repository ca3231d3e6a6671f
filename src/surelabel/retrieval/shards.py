"""Define index shards, parts of an index whose rows are read, searched or marked as removed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.arrays import LOGIT_LIMIT
from surelabel.retrieval.file_state import is_valid_file_state_path
from surelabel.retrieval.hnsw_graph import HnswGraph, HnswRecord
from surelabel.retrieval.label_table import FloatLabelTable, IndexLabelTable
from surelabel.retrieval.path_masks import PathMasks
from surelabel.retrieval.plane_label_table import PlaneLabelTable
from surelabel.retrieval.shard_checksums import extend_shard_checksum
from surelabel.retrieval.shard_files import ShardFiles
from surelabel.retrieval.shard_layout import COLUMN_LISTS, INDEX_VERSION, ShardLayout
from surelabel.retrieval.shard_paths import ShardPaths
from surelabel.retrieval.shard_rows import LabelValues, ShardRows
from surelabel.retrieval.sparse_label_table import SparseLabelTable
from surelabel.retrieval.sparse_labels import MAX_DROP_BELOW

FEATURE_BLOCK_ROWS = 1 << 14  # rows of features that are read at once
PATH_BLOCK_ROWS = 1 << 16  # paths that are converted to Python strings at once
PATH_BATCH_GROUPS = 1 << 6  # row groups whose paths are compared at once


@dataclass(frozen=True)
class Shard:
    """Shard on disk, mapped into memory; ``len`` returns the number of rows that were not removed.

    Attributes:
        folder: Folder of the index.
        number: Shard number, which is part of the file names.
        layout: Version, number of rows and encodings of the labels.
        files: Size of each file in bytes, by file name.
        removed: Row numbers of the removed rows.
        features_checksum: Checksum of the image features. If the shard has no features, or has
            version 1, the value is None.
        hnsw: Checksum and recall of the graph for approximate search, or None without a graph.
        drop_below: Probability below which log-odds were replaced in a sparse form, which can be
            that of an earlier shard. If no log-odds were replaced, the value is None.
    """

    folder: Path
    number: int
    layout: ShardLayout
    files: dict[str, int]
    removed: tuple[int, ...] = ()
    features_checksum: int | None = None
    hnsw: HnswRecord | None = None
    drop_below: float | None = None

    def __len__(self) -> int:
        return self.n_rows - len(self.removed)

    @classmethod
    def from_entry(
        cls, folder: Path, entry: dict[str, Any], version: int = INDEX_VERSION
    ) -> "Shard":
        """Create a shard from an entry of ``index.json``, as the inverse of `entry`.

        Raises:
            ValueError, KeyError, TypeError: If a field of the entry is missing or invalid.
        """
        number, n_rows, files, removed = (entry[k] for k in ("number", "rows", "files", "removed"))
        checksum = None if version == 1 else entry["features_checksum"]
        if not all(type(i) is int and i >= 0 for i in (number, n_rows, *files.values())):
            raise ValueError("number, rows and bytes must be whole numbers of 0 or more")
        columns = [] if version == 1 else [entry[name] for name in COLUMN_LISTS]
        if not all(map(_are_increasing_columns, columns)):
            raise ValueError("columns must be increasing whole numbers of 0 or more")
        drop_below = entry.get("drop_below")
        if drop_below is not None and not (
            type(drop_below) is float and 0 < drop_below <= MAX_DROP_BELOW
        ):
            raise ValueError(f"drop_below must be in (0, {MAX_DROP_BELOW}] or null")
        defaults, counts = _parse_sparse_fields(entry)
        layout = ShardLayout(n_rows, version, *map(tuple, columns))
        layout = replace(layout, sparse_defaults=defaults, sparse_counts=counts)
        if layout.is_sparse and (version == 1 or drop_below is None):
            raise ValueError("a shard in sparse form must have drop_below")
        required = layout.required_files(number)
        features_file = f"features-{number:03}.npy"
        optional = {features_file, f"ann-{number:03}.usearch"}
        if not required <= files.keys() <= required | optional:
            raise ValueError(f"the files of shard {number} must be {sorted(required)}")
        hnsw = None if entry.get("ann") is None else HnswRecord.from_entry(entry["ann"])
        has_graph = f"ann-{number:03}.usearch" in files
        if (hnsw is not None) != has_graph or has_graph > (features_file in files):
            raise ValueError("ann and an ANN file must be given together, with features")
        if version > 1 and (type(checksum) is int) != (features_file in files):
            raise ValueError(
                "features_checksum must be a number if the shard has features, else null"
            )
        are_rows = isinstance(removed, list) and all(
            type(row) is int and 0 <= row < n_rows for row in removed
        )
        if not are_rows or len(set(removed)) < len(removed):
            raise ValueError(f"removed must be distinct row numbers below {n_rows}")
        return cls(folder, number, layout, files, tuple(removed), checksum, hnsw, drop_below)

    @property
    def n_rows(self) -> int:
        """Return the number of all rows, including removed rows."""
        return self.layout.n_rows

    @property
    def has_file_metadata(self) -> bool:
        """Return whether the shard has the date, width and height of images, unlike version 1."""
        return self.layout.version > 1

    @property
    def entry(self) -> dict[str, Any]:
        """Return the entry of the shard in ``index.json``."""
        return {
            "number": self.number,
            "rows": self.n_rows,
            "files": self.files,
            **{name: list(columns) for name, columns in self.layout.columns.items()},
            "features_checksum": self.features_checksum,
            "removed": list(self.removed),
            **({} if self.hnsw is None else {"ann": asdict(self.hnsw)}),
            **({} if self.drop_below is None else {"drop_below": self.drop_below}),
            **{name: list(values) for name, values in self.layout.sparse_fields.items()},
        }

    @cached_property
    def is_active(self) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the rows that were not removed, ``(n,)``, or None without removals."""
        if not self.removed:
            return None
        is_active = np.ones(self.n_rows, bool)
        is_active[list(self.removed)] = False
        return is_active

    @cached_property
    def mapped_files(self) -> ShardFiles:
        """Return the files of the shard, mapped into memory."""
        return ShardFiles(self.folder, self.number, self.files, self.layout)

    @cached_property
    def label_table(self) -> IndexLabelTable:
        """Return the table of the log-odds of all labels and rows, which a search reads."""
        if self.layout.is_sparse:
            return SparseLabelTable(self.mapped_files, self.is_active)
        if self.layout.version > 1:
            return self._plane_label_table
        arrays = self.mapped_files.arrays
        return FloatLabelTable(arrays["logits"], arrays["scores"], arrays["order"], self.is_active)

    @cached_property
    def _plane_label_table(self) -> PlaneLabelTable:
        return PlaneLabelTable(self.mapped_files, self.is_active)

    def read_file_columns(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the table of all rows, including removed rows, read from disk.

        Args:
            names: Names of columns: ``path``, ``bytes``, ``mtime_ns`` or ``hash``, and if the shard
                has file metadata, ``date``, ``width`` or ``height``.
        """
        return self.mapped_files.read_columns(names)

    @cached_property
    def paths(self) -> ShardPaths:
        """Return the stored paths of the rows, some of which are cached after a read."""
        return ShardPaths(self.mapped_files)

    @cached_property
    def path_masks(self) -> PathMasks:
        """Return the object that computes and caches masks of path patterns."""
        return PathMasks(self.paths)

    @property
    def active_file_states(self) -> pa.Table:
        """Return the table of the rows that were not removed, read from disk.

        The columns are the stored path and the file state and, from version 2, the date, width and
        height of the image.
        """
        table = self.mapped_files.read_columns()
        return table if self.is_active is None else table.filter(pa.array(self.is_active))

    def active_column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the table of the rows that were not removed, read from disk.

        Args:
            name: Name of the column, as for `read_file_columns`.
        """
        column = self.mapped_files.read_columns([name])[name]
        return column if self.is_active is None else column.filter(pa.array(self.is_active))

    @property
    def feature_width(self) -> int | None:
        """Return the width of the image features, or None if no features are stored."""
        features = self.mapped_files.arrays.get("features")
        return None if features is None else features.shape[1]

    @property
    def hnsw_file(self) -> Path:
        """Return the path of the graph for approximate search; the file can be missing."""
        return self.folder / f"ann-{self.number:03}.usearch"

    @cached_property
    def hnsw_graph(self) -> HnswGraph | None:
        """Return the graph for approximate search, or None if the shard has no graph."""
        if self.hnsw is None:
            return None
        size = self.files[self.hnsw_file.name]
        return HnswGraph(self.hnsw_file, size, self.hnsw.checksum, self.n_rows)

    def with_graph(self, hnsw: HnswRecord | None) -> "Shard":
        """Return a copy of the shard with the graph for approximate search, or without a graph.

        The file of the graph must exist, because its size is read.

        Args:
            hnsw: Checksum and recall of the graph, or None.
        """
        files = {name: size for name, size in self.files.items() if name != self.hnsw_file.name}
        if hnsw is not None:
            files[self.hnsw_file.name] = self.hnsw_file.stat().st_size
        return replace(self, files=files, hnsw=hnsw)

    def active_path_blocks(self) -> Iterator[list[str]]:
        """Yield the stored paths of the rows that were not removed, in blocks, in row order."""
        stored_paths = self.active_column("path")
        for start in range(0, len(stored_paths), PATH_BLOCK_ROWS):
            yield stored_paths.slice(start, PATH_BLOCK_ROWS).to_pylist()

    def find_rows(self, paths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows with the given stored paths, except removed rows.

        The numbers are increasing. Paths that are not in the shard are ignored.
        """
        valid_paths = pa.array(filter(is_valid_file_state_path, paths), pa.string())
        groups, parts = self.paths.groups(), [np.empty(0, np.bool_)]
        while batch := list(islice(groups, PATH_BATCH_GROUPS)):
            parts.append(pc.is_in(pa.chunked_array(batch), value_set=valid_paths).to_numpy())
        is_match = np.concatenate(parts)
        return np.flatnonzero(is_match if self.is_active is None else is_match & self.is_active)

    def with_removed_rows(self, rows: Iterable[int]) -> "Shard":
        """Return a shard in which the given rows are also marked as removed."""
        removed = tuple(sorted({*self.removed, *map(int, rows)}))
        return self if removed == self.removed else replace(self, removed=removed)

    def active_rows(self) -> ShardRows:
        """Return the rows that were not removed, whose arrays are verified when they are read.

        If damaged rows were written to a new shard, they would have valid checksums. Therefore,
        reading an array whose checksum does not match raises DataError.
        """
        if self.layout.sparse_counts is not None:
            n_labels = len(self.layout.sparse_counts)
        else:
            n_labels = len(self.mapped_files.arrays[self.layout.checksummed[0]])
        return ShardRows(
            self.active_file_states,
            n_labels,
            self.feature_width,
            self._active_label_values,
            self.active_feature_blocks,
            self.drop_below,
            self.layout.is_sparse,
        )

    def _active_label_values(self, column: int) -> LabelValues:
        self.mapped_files.verify_checksums([column])
        rows = slice(None) if self.is_active is None else np.flatnonzero(self.is_active)
        if self.layout.is_sparse:
            return self.label_table.logits(column, rows), None
        if self.layout.version > 1:
            table = self._plane_label_table
            return table.logits(column, rows), table.stored_scores(column, rows)
        arrays = self.mapped_files.arrays
        return arrays["logits"][column, rows], arrays["scores"][column, rows]

    def active_feature_blocks(self) -> Iterator[npt.NDArray[np.float16]]:
        """Yield the image features of the rows that were not removed, in blocks, ``(b, d)``.

        If no features are stored, no block is yielded.

        Raises:
            DataError: After the last block, if the checksum of the features does not match. Before
                the first block, if a file was truncated.
        """
        features, checksum = self.mapped_files.arrays.get("features"), 0
        if features is None:
            return
        self.mapped_files.check_not_truncated()
        for start in range(0, self.n_rows, FEATURE_BLOCK_ROWS):
            rows = slice(start, start + FEATURE_BLOCK_ROWS)
            block = features[rows]
            checksum = extend_shard_checksum(checksum, block)
            yield block if self.is_active is None else block[self.is_active[rows]]
        if self.features_checksum not in (None, checksum):
            raise self.mapped_files.damage_error("features", "the checksum does not match")


def _parse_sparse_fields(
    entry: dict[str, Any],
) -> tuple[tuple[float, ...] | None, tuple[int, ...] | None]:
    """Return ``sparse_defaults`` and ``sparse_counts`` of an entry, or None without sparse form.

    Raises:
        ValueError: If a field is invalid.
    """
    defaults, counts = entry.get("sparse_defaults"), entry.get("sparse_counts")
    if defaults is None and counts is None:
        return None, None
    if not isinstance(defaults, list) or not all(
        type(default) is float and abs(default) <= LOGIT_LIMIT for default in defaults
    ):
        raise ValueError(f"sparse_defaults must be numbers in [-{LOGIT_LIMIT:g}, {LOGIT_LIMIT:g}]")
    if not isinstance(counts, list) or not all(
        type(count) is int and 0 <= count <= entry["rows"] for count in counts
    ):
        raise ValueError("sparse_counts must be whole numbers up to the number of rows")
    if len(defaults) != len(counts):
        raise ValueError("sparse_defaults and sparse_counts must have one number for each label")
    if entry["step_columns"] or entry["score_columns"]:
        raise ValueError("a shard in sparse form must not have step tables or raw scores")
    if entry["unscored_columns"] != list(range(len(counts))):
        raise ValueError("unscored_columns of a shard in sparse form must be all columns")
    return tuple(defaults), tuple(counts)


def _are_increasing_columns(columns: Any) -> bool:
    """Return whether a value of ``index.json`` is a list of increasing columns of labels."""
    return (
        isinstance(columns, list)
        and all(type(column) is int and column >= 0 for column in columns)
        and all(first < second for first, second in pairwise(columns))
    )
