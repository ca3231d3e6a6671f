"""Index shards: groups of files for a part of the indexed images.

A row is an image, and all files of a shard have the same rows. Files are never modified.

    rows-000.parquet     path, bytes, mtime_ns, hash of each image
    logits-000.npy       log-odds, float32, (c, n)
    scores-000.npy       raw scores that break ties, float32, (c, n)
    order-000.npy        rows for each label, sorted by decreasing logit, int32, (c, n)
    checksums-000.npy    checksums of the logits and of the order of each label, uint32, (2, c)
    features-000.npy     image features, float16, (n, d); optional

Log-odds are float32, because float16 rounds values near 40 to multiples of 0.03 and makes distinct
values equal.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surelabel.errors import DataError
from surelabel.files import atomic_file
from surelabel.retrieval.conjunction_search import (
    ConjunctionSearchLogits,
    descending_order_for_conjunction_search,
)
from surelabel.retrieval.file_state import is_valid_file_state_path

ROW_GROUP_SIZE = 1 << 16
FOLD_WORDS = 1 << 11  # words per piece of 8 KiB; a checksum of the full line would be much slower
CHECKSUMMED_ARRAYS = ("logits", "order")
ARRAY_DTYPES = {
    "logits": np.dtype(np.float32),
    "scores": np.dtype(np.float32),
    "order": np.dtype(np.int32),
    "checksums": np.dtype(np.uint32),
}


@dataclass(frozen=True)
class ShardRows:
    """Rows in memory, to be written to a shard.

    Attributes:
        file_states: Path and file state of each image, ``n`` rows.
        logits: Log-odds, ``(c, n)``.
        scores: Raw scores, ``(c, n)``.
        features: Image features, ``(n, d)``. If None, no features are stored.
    """

    file_states: pa.Table
    logits: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    features: npt.NDArray[np.float16] | None


@dataclass(frozen=True)
class Shard:
    """Shard on disk, mapped into memory; ``len`` returns the number of rows that were not removed.

    Attributes:
        folder: Folder of the index.
        number: Shard number, which is part of the file names.
        n_rows: Number of all rows, including removed rows.
        files: Size of each file in bytes, by file name.
        removed: Row numbers of the removed rows.
    """

    folder: Path
    number: int
    n_rows: int
    files: dict[str, int]
    removed: tuple[int, ...] = ()

    def __len__(self) -> int:
        return self.n_rows - len(self.removed)

    @classmethod
    def from_entry(cls, folder: Path, entry: dict[str, Any]) -> "Shard":
        """Create a shard from an entry of ``index.json``, as the inverse of `entry`.

        Raises:
            ValueError, KeyError, TypeError: If a field of the entry is missing or invalid.
        """
        number, n_rows, files, removed = (entry[k] for k in ("number", "rows", "files", "removed"))
        if not all(type(i) is int and i >= 0 for i in (number, n_rows, *files.values())):
            raise ValueError("number, rows and bytes must be whole numbers of 0 or more")
        required = {f"rows-{number:03}.parquet"}
        required |= {f"{name}-{number:03}.npy" for name in ARRAY_DTYPES}
        if not required <= files.keys() <= required | {f"features-{number:03}.npy"}:
            raise ValueError(f"the files of shard {number} must be {sorted(required)}")
        are_rows = isinstance(removed, list) and all(
            type(row) is int and 0 <= row < n_rows for row in removed
        )
        if not are_rows or len(set(removed)) < len(removed):
            raise ValueError(f"removed must be distinct row numbers below {n_rows}")
        return cls(folder, number, n_rows, files, tuple(removed))

    @property
    def entry(self) -> dict[str, Any]:
        """Entry of the shard in ``index.json``."""
        return {
            "number": self.number,
            "rows": self.n_rows,
            "files": self.files,
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
    def file_states(self) -> pa.Table:
        """Paths and file states of all rows, including removed rows."""
        return self._read("rows", "parquet", lambda _: self._parquet.read().combine_chunks())

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        return self._read("rows", "parquet", _open_shard_parquet)

    @property
    def active_file_states(self) -> pa.Table:
        """Paths and file states of the rows that were not removed."""
        if self.is_active is None:
            return self.file_states
        return self.file_states.filter(pa.array(self.is_active))

    @cached_property
    def sorted_logits(self) -> ConjunctionSearchLogits:
        """Log-odds, raw scores and sorted row numbers, the input of a search."""
        logits, scores, order = map(self._array, ("logits", "scores", "order"))
        return ConjunctionSearchLogits(logits, scores, order, self.is_active)

    @cached_property
    def _checksums(self) -> npt.NDArray[np.uint32]:
        return np.array(self._array("checksums"))

    @cached_property
    def _verified_columns(self) -> set[int]:
        """Columns whose checksums `verify_checksums` has compared."""
        return set()

    @cached_property
    def features(self) -> npt.NDArray[np.float16] | None:
        """Image features, ``(n, d)``, or None if no features are stored."""
        return self._array("features") if f"features-{self.number:03}.npy" in self.files else None

    def check_files(self, c: int) -> None:
        """Open every file and check its size and shape.

        The files stay open, so the shard stays readable after another process replaces the files.

        Args:
            c: Number of labels of the index.

        Raises:
            DataError: If a file is missing or cannot be read, or its size or shape differs from the
                manifest.
        """
        for name, size in self.files.items():
            file = self.folder / name
            actual_size = _shard_file_size(file)
            if actual_size != size:
                actual = "no file" if actual_size is None else f"{actual_size} bytes"
                raise _damaged_shard_error(file, f"expected {size} bytes, got {actual}")
        for name, dtype in ARRAY_DTYPES.items():
            is_checksums = name == "checksums"
            array = self._checksums if is_checksums else getattr(self.sorted_logits, name)
            shape = (len(CHECKSUMMED_ARRAYS), c) if is_checksums else (c, self.n_rows)
            if (array.shape, array.dtype) != (shape, dtype):
                actual = f"{array.shape} of {array.dtype.str}"
                file = self._file(name, "npy")
                raise _damaged_shard_error(file, f"expected shape {shape}, got {actual}")
        if self._parquet.metadata.num_rows != self.n_rows:
            file = self._file("rows", "parquet")
            raise _damaged_shard_error(file, f"expected {self.n_rows} rows")
        if self.features is not None and len(self.features) != self.n_rows:
            raise _damaged_shard_error(
                self._file("features", "npy"), f"expected {self.n_rows} rows"
            )

    def verify_checksums(self, columns: Iterable[int]) -> None:
        """Compare the arrays of some labels with their checksums, once for each label.

        Args:
            columns: Columns of the labels.

        Raises:
            DataError: If a checksum does not match, which means that a file is damaged.
        """
        for column in set(columns) - self._verified_columns:
            for name, checksums in zip(CHECKSUMMED_ARRAYS, self._checksums, strict=True):
                if shard_checksum(getattr(self.sorted_logits, name)[column]) != checksums[column]:
                    raise _damaged_shard_error(
                        self._file(name, "npy"), f"the checksum of label {column} does not match"
                    )
            self._verified_columns.add(column)

    def find_rows(self, paths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows with the given absolute paths, except removed rows."""
        valid_paths = pa.array(filter(is_valid_file_state_path, paths), pa.string())
        is_match = pc.is_in(self.file_states["path"], value_set=valid_paths).to_numpy()
        return np.flatnonzero(is_match if self.is_active is None else is_match & self.is_active)

    def with_removed_rows(self, rows: Iterable[int]) -> "Shard":
        """Return a copy of the shard in which the given rows are also marked as removed."""
        return replace(self, removed=tuple(sorted({*self.removed, *map(int, rows)})))

    def read_active_rows(self) -> ShardRows:
        """Read the rows that were not removed.

        Raises:
            DataError: If a checksum does not match. Writing damaged rows to a new shard would give
                them valid checksums.
        """
        self.verify_checksums(range(len(self.sorted_logits.logits)))
        rows = slice(None) if self.is_active is None else np.flatnonzero(self.is_active)
        features = None if self.features is None else self.features[rows]
        logits = self.sorted_logits.logits[:, rows]
        scores = self.sorted_logits.scores[:, rows]
        return ShardRows(self.active_file_states, logits, scores, features)

    def _array(self, name: str) -> Any:
        return self._read(name, "npy", lambda file: np.asarray(np.load(file, mmap_mode="r")))

    def _file(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}-{self.number:03}.{suffix}"

    def _read(self, name: str, suffix: str, reader: Any) -> Any:
        file = self._file(name, suffix)
        try:
            return reader(file)
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise _damaged_shard_error(file, "the file cannot be read") from error


def write_shard(folder: Path, number: int, batches: Sequence[ShardRows]) -> Shard:
    """Write the rows of all batches, in the given order, to one new shard.

    Arrays are written label by label to save memory. The shard is not part of the index until
    ``index.json`` lists the shard.

    Args:
        folder: Folder of the index.
        number: Number of the new shard.
        batches: Rows to write, at least one batch.

    Raises:
        DataError: If the folder cannot be written.
    """
    file_states = pa.concat_tables(batch.file_states for batch in batches)
    n, c = file_states.num_rows, len(batches[0].logits)
    array_files = {name: folder / f"{name}-{number:03}.npy" for name in ARRAY_DTYPES}
    checksums: dict[str, list[int]] = {name: [] for name in CHECKSUMMED_ARRAYS}
    parquet_file = folder / f"rows-{number:03}.parquet"
    with atomic_file(parquet_file) as file:
        pq.write_table(
            file_states,
            file,
            row_group_size=ROW_GROUP_SIZE,
            compression="zstd",
            write_page_checksum=True,
        )

    def label_lines(name: str) -> Iterable[Any]:
        return (np.concatenate([getattr(b, name)[j] for b in batches]) for j in range(c))

    def with_checksums(name: str, lines: Iterable[Any]) -> Iterable[Any]:
        for line in lines:
            checksums[name].append(shard_checksum(line))
            yield line

    shape = (c, n)
    logits = with_checksums("logits", label_lines("logits"))
    order = with_checksums(
        "order", map(descending_order_for_conjunction_search, label_lines("logits"))
    )
    write_shard_array(array_files["logits"], shape, ARRAY_DTYPES["logits"], logits)
    write_shard_array(array_files["scores"], shape, ARRAY_DTYPES["scores"], label_lines("scores"))
    write_shard_array(array_files["order"], shape, ARRAY_DTYPES["order"], order)
    write_shard_array(
        array_files["checksums"],
        (len(CHECKSUMMED_ARRAYS), c),
        ARRAY_DTYPES["checksums"],
        checksums.values(),
    )
    files = [parquet_file, *array_files.values()]
    features = [batch.features for batch in batches if batch.features is not None]
    if features:
        files.append(folder / f"features-{number:03}.npy")
        write_shard_array(files[-1], (n, features[0].shape[1]), np.float16, features)
    return Shard(folder, number, n, {file.name: file.stat().st_size for file in files})


def write_shard_array(file: Path, shape: tuple[int, int], dtype: Any, parts: Iterable[Any]) -> None:
    """Write a ``.npy`` file part by part.

    The file is not written through a memory map, because a full disk would then crash the process
    instead of raising an error.

    Args:
        file: Path of the new file.
        shape: Shape of the complete array.
        dtype: Data type of the array.
        parts: Rows of the array, or blocks of rows, in order.

    Raises:
        DataError: If the file cannot be written.
    """
    dtype_description = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": dtype_description, "fortran_order": False, "shape": shape}
    with atomic_file(file) as temporary, temporary.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts:
            stream.write(np.ascontiguousarray(part, dtype).data)


def shard_checksum(line: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of an array of 4-byte numbers, after combining pieces of 8 KiB by XOR.

    The probability that damage within 8 KiB remains undetected is about 2^-32. Larger damage also
    remains undetected if the changed bits of different pieces cancel.
    """
    words = np.ascontiguousarray(line).view(np.uint32)
    end = len(words) // FOLD_WORDS * FOLD_WORDS
    folded = np.bitwise_xor.reduce(words[:end].reshape(-1, FOLD_WORDS), axis=0)
    return zlib.crc32(words[end:].data, zlib.crc32(folded.data))


def _shard_file_size(file: Path) -> int | None:
    """Return the size of a shard file in bytes, or None if the file cannot be read."""
    try:
        return file.stat().st_size
    except OSError:
        return None


def _open_shard_parquet(file: Path) -> pq.ParquetFile:
    return pq.ParquetFile(file, memory_map=True, page_checksum_verification=True)


def _damaged_shard_error(file: Path, reason: str) -> DataError:
    return DataError(
        f"{file} is damaged: {reason}. Restore the file, or build the index again "
        f"(`surelabel index`)."
    )
