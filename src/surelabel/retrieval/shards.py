"""Index shards: parts of the indexed images, whose rows are read, found and marked as removed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.retrieval.conjunction_search import ConjunctionSearchLogits
from surelabel.retrieval.file_state import is_valid_file_state_path
from surelabel.retrieval.shard_checksums import extend_shard_checksum
from surelabel.retrieval.shard_files import ARRAY_DTYPES, INDEX_VERSION, ShardFiles
from surelabel.retrieval.shard_rows import LabelLine, ShardRows

FEATURE_BLOCK_ROWS = 1 << 14  # rows of features that are read at once
PATH_BLOCK_ROWS = 1 << 16  # paths that are Python strings at once


@dataclass(frozen=True)
class Shard:
    """Shard on disk, mapped into memory; ``len`` returns the number of rows that were not removed.

    Attributes:
        folder: Folder of the index.
        number: Shard number, which is part of the file names.
        n_rows: Number of all rows, including removed rows.
        files: Size of each file in bytes, by file name.
        removed: Row numbers of the removed rows.
        features_checksum: Checksum of the image features. If the shard has no features, or has
            version 1, the value is None.
        version: Version of the index that contains the shard.
    """

    folder: Path
    number: int
    n_rows: int
    files: dict[str, int]
    removed: tuple[int, ...] = ()
    features_checksum: int | None = None
    version: int = INDEX_VERSION

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
        required = {f"rows-{number:03}.parquet"}
        required |= {f"{name}-{number:03}.npy" for name in ARRAY_DTYPES}
        features_file = f"features-{number:03}.npy"
        if not required <= files.keys() <= required | {features_file}:
            raise ValueError(f"the files of shard {number} must be {sorted(required)}")
        if version > 1 and (type(checksum) is int) != (features_file in files):
            raise ValueError("features_checksum must be a number if the shard has features")
        are_rows = isinstance(removed, list) and all(
            type(row) is int and 0 <= row < n_rows for row in removed
        )
        if not are_rows or len(set(removed)) < len(removed):
            raise ValueError(f"removed must be distinct row numbers below {n_rows}")
        return cls(folder, number, n_rows, files, tuple(removed), checksum, version)

    @property
    def entry(self) -> dict[str, Any]:
        """Entry of the shard in ``index.json``."""
        return {
            "number": self.number,
            "rows": self.n_rows,
            "files": self.files,
            "features_checksum": self.features_checksum,
            "removed": list(self.removed),
        }

    @cached_property
    def is_active(self) -> npt.NDArray[np.bool_] | None:
        """Mask that is False for removed rows, ``(n,)``, or None if no row was removed."""
        if not self.removed:
            return None
        is_active = np.ones(self.n_rows, bool)
        is_active[list(self.removed)] = False
        return is_active

    @cached_property
    def mapped_files(self) -> ShardFiles:
        """Files of the shard, mapped into memory."""
        return ShardFiles(self.folder, self.number, self.n_rows, self.files, self.version)

    @property
    def file_states(self) -> pa.Table:
        """Stored paths and file states of all rows, including removed rows."""
        return self.mapped_files.file_states

    @property
    def active_file_states(self) -> pa.Table:
        """Stored paths and file states of the rows that were not removed."""
        if self.is_active is None:
            return self.file_states
        return self.file_states.filter(pa.array(self.is_active))

    @property
    def feature_width(self) -> int | None:
        """Width of the image features, or None if no features are stored."""
        features = self.mapped_files.arrays.get("features")
        return None if features is None else features.shape[1]

    @cached_property
    def sorted_logits(self) -> ConjunctionSearchLogits:
        """Log-odds, raw scores and sorted row numbers, the input of a search."""
        arrays = self.mapped_files.arrays
        return ConjunctionSearchLogits(
            arrays["logits"], arrays["scores"], arrays["order"], self.is_active
        )

    def active_path_blocks(self) -> Iterator[list[str]]:
        """Yield the stored paths of the rows that were not removed, in blocks, in row order."""
        stored_paths = self.mapped_files.read_paths()
        if self.is_active is not None:
            stored_paths = stored_paths.filter(pa.array(self.is_active))
        for start in range(0, len(stored_paths), PATH_BLOCK_ROWS):
            yield stored_paths.slice(start, PATH_BLOCK_ROWS).to_pylist()

    def find_rows(self, paths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows with the given stored paths, except removed rows."""
        valid_paths = pa.array(filter(is_valid_file_state_path, paths), pa.string())
        stored_paths = self.mapped_files.read_paths()
        is_match = pc.is_in(stored_paths, value_set=valid_paths).to_numpy()
        return np.flatnonzero(is_match if self.is_active is None else is_match & self.is_active)

    def with_removed_rows(self, rows: Iterable[int]) -> "Shard":
        """Return the shard, or a copy in which the given rows are also marked as removed."""
        removed = tuple(sorted({*self.removed, *map(int, rows)}))
        return self if removed == self.removed else replace(self, removed=removed)

    def active_rows(self) -> ShardRows:
        """Return the rows that were not removed, whose arrays are verified when they are read.

        Writing damaged rows to a new shard would give them valid checksums. Therefore reading an
        array whose checksum does not match raises DataError.
        """
        return ShardRows(
            self.active_file_states,
            len(self.sorted_logits.logits),
            self.feature_width,
            self._active_label_line,
            self.active_feature_blocks,
        )

    def _active_label_line(self, name: str, column: int) -> LabelLine:
        self.mapped_files.verify_checksums([column])
        line: LabelLine = getattr(self.sorted_logits, name)[column]
        return line if self.is_active is None else line[self.is_active]

    def active_feature_blocks(self) -> Iterator[npt.NDArray[np.float16]]:
        """Yield the features of active rows in blocks, ``(b, d)``, which are read from disk.

        Raises:
            DataError: After the last block, if the checksum of the features does not match.
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
