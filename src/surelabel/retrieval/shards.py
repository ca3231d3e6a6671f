"""One shard of an index: some files of the same rows, written once and never changed.

    rows-000.parquet     path, bytes, mtime_ns, hash of each picture
    logits-000.npy       log-odds, float32, label-major (c, n)
    scores-000.npy       raw scores that break ties, float32, (c, n)
    order-000.npy        rows of each label by falling logit, int32, (c, n)
    checksums-000.npy    of the lines of logits and of order, uint32, (2, c)
    features-000.npy     image vectors, float16, (n, d), where there are any

Log-odds are float32: float16 has steps of 0.03 near 40 and would tie what is not tied.
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
from surelabel.files import new_file
from surelabel.retrieval.search import Sorted, order_of
from surelabel.retrieval.stamps import storable

ROW_GROUP = 1 << 16
FOLD = 1 << 11  # numbers in a piece of 8 KiB; a checksum of all of a line would cost much more
CHECKED = ("logits", "order")
ARRAYS = {
    "logits": np.dtype(np.float32),
    "scores": np.dtype(np.float32),
    "order": np.dtype(np.int32),
    "checksums": np.dtype(np.uint32),
}


@dataclass(frozen=True)
class Batch:
    """Rows on their way into a shard.

    Attributes:
        table: Path and stamp of each picture, ``n`` rows.
        logits: ``(c, n)``.
        scores: ``(c, n)``.
        features: ``(n, d)``, or None.
    """

    table: pa.Table
    logits: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    features: npt.NDArray[np.float16] | None


@dataclass(frozen=True)
class Shard:
    """Rows on disk, mapped into memory; its rows are told from its removed rows.

    Attributes:
        folder: Of the index.
        number: In the names of its files.
        size: All rows, also removed ones.
        files: Bytes of each of its files.
        removed: Row numbers that no longer count.
    """

    folder: Path
    number: int
    size: int
    files: dict[str, int]
    removed: tuple[int, ...] = ()

    def __len__(self) -> int:
        return self.size - len(self.removed)

    @classmethod
    def from_entry(cls, folder: Path, entry: dict[str, Any]) -> "Shard":
        """The inverse of `entry`.

        Raises:
            ValueError, KeyError, TypeError: it is not what `entry` gives.
        """
        number, size, files, removed = (entry[k] for k in ("number", "rows", "files", "removed"))
        if not all(type(i) is int and i >= 0 for i in (number, size, *files.values())):
            raise ValueError("number, rows and bytes must be whole numbers of 0 or more")
        needed = {f"rows-{number:03}.parquet", *(f"{name}-{number:03}.npy" for name in ARRAYS)}
        if not needed <= files.keys() <= needed | {f"features-{number:03}.npy"}:
            raise ValueError(f"the files of shard {number} must be {sorted(needed)}")
        rows = isinstance(removed, list) and all(type(r) is int and 0 <= r < size for r in removed)
        if not rows or len(set(removed)) < len(removed):
            raise ValueError(f"removed must be row numbers below {size}, each once")
        return cls(folder, number, size, files, tuple(removed))

    @property
    def entry(self) -> dict[str, Any]:
        """What ``index.json`` says of it."""
        return {
            "number": self.number,
            "rows": self.size,
            "files": self.files,
            "removed": list(self.removed),
        }

    @cached_property
    def living(self) -> npt.NDArray[np.bool_] | None:
        """False where a row was removed; None when none was."""
        if not self.removed:
            return None
        living = np.ones(self.size, bool)
        living[list(self.removed)] = False
        return living

    @cached_property
    def table(self) -> pa.Table:
        """Paths and stamps of all rows, also removed ones, read when first needed."""
        return self._read("rows", "parquet", lambda _: self._rows.read().combine_chunks())

    @cached_property
    def _rows(self) -> pq.ParquetFile:
        return self._read("rows", "parquet", _open_rows)

    @property
    def living_table(self) -> pa.Table:
        """Paths and stamps of the living rows."""
        return self.table if self.living is None else self.table.filter(pa.array(self.living))

    @cached_property
    def sorted(self) -> Sorted:
        """The arrays that a search reads."""
        logits, scores, order = map(self._array, ("logits", "scores", "order"))
        return Sorted(logits, scores, order, self.living)

    @cached_property
    def _checksums(self) -> npt.NDArray[np.uint32]:
        return np.array(self._array("checksums"))

    @cached_property
    def _sound(self) -> set[int]:
        """Labels that `check_labels` found whole."""
        return set()

    @cached_property
    def features(self) -> npt.NDArray[np.float16] | None:
        """Image vectors, ``(n, d)``, where there are any."""
        return self._array("features") if f"features-{self.number:03}.npy" in self.files else None

    def check(self, c: int) -> None:
        """Open every file, and keep it open: it stays readable when another process replaces it.

        Raises:
            DataError: one is missing, shorter or longer than it was, or holds other rows.
        """
        for name, size in self.files.items():
            file = self.folder / name
            found = _size(file)
            if found != size:
                came = "nothing" if found is None else f"{found} bytes"
                raise _damaged(file, f"expected {size} bytes, found {came}")
        for name, kind in ARRAYS.items():
            array = self._checksums if name == "checksums" else getattr(self.sorted, name)
            shape = (len(CHECKED), c) if name == "checksums" else (c, self.size)
            if (array.shape, array.dtype) != (shape, kind):
                came = f"{array.shape} of {array.dtype.str}"
                raise _damaged(self._file(name, "npy"), f"expected {shape}, found {came}")
        if self._rows.metadata.num_rows != self.size:
            raise _damaged(self._file("rows", "parquet"), f"expected {self.size} rows")
        if self.features is not None and len(self.features) != self.size:
            raise _damaged(self._file("features", "npy"), f"expected {self.size} rows")

    def check_labels(self, columns: Iterable[int]) -> None:
        """Compare the lines of these labels with their checksums, once as long as this is open.

        Raises:
            DataError: a line is not what was written.
        """
        for column in set(columns) - self._sound:
            for name, sums in zip(CHECKED, self._checksums, strict=True):
                if checksum(getattr(self.sorted, name)[column]) != sums[column]:
                    what = f"label {column} is not what was written"
                    raise _damaged(self._file(name, "npy"), what)
            self._sound.add(column)

    def places(self, paths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Rows of those of ``paths``, whole ones, that are here and living."""
        texts = pa.array(filter(storable, paths), pa.string())  # what is no text is not in here
        here = pc.is_in(self.table["path"], value_set=texts)
        mask = here.to_numpy()
        return np.flatnonzero(mask if self.living is None else mask & self.living)

    def without(self, rows: Iterable[int]) -> "Shard":
        """The same shard with these rows removed too."""
        return replace(self, removed=tuple(sorted({*self.removed, *map(int, rows)})))

    def batch(self) -> Batch:
        """The living rows.

        Raises:
            DataError: they are damaged, so that writing them anew would hide it.
        """
        self.check_labels(range(len(self.sorted.logits)))
        keep = slice(None) if self.living is None else np.flatnonzero(self.living)
        features = None if self.features is None else self.features[keep]
        logits, scores = self.sorted.logits[:, keep], self.sorted.scores[:, keep]
        return Batch(self.living_table, logits, scores, features)

    def _array(self, name: str) -> Any:
        return self._read(name, "npy", lambda file: np.asarray(np.load(file, mmap_mode="r")))

    def _file(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}-{self.number:03}.{suffix}"

    def _read(self, name: str, suffix: str, reader: Any) -> Any:
        file = self._file(name, suffix)
        try:
            return reader(file)
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise _damaged(file, "it cannot be read") from error


def write(folder: Path, number: int, batches: Sequence[Batch]) -> Shard:
    """Write the rows of all batches, in this order, as one new shard.

    One label is in memory at a time. Nothing refers to the files until ``index.json`` names them.

    Raises:
        DataError: the folder cannot be written.
    """
    table = pa.concat_tables(batch.table for batch in batches)
    n, c = table.num_rows, len(batches[0].logits)
    named = {name: folder / f"{name}-{number:03}.npy" for name in ARRAYS}
    sums: dict[str, list[int]] = {name: [] for name in CHECKED}
    rows = folder / f"rows-{number:03}.parquet"
    with new_file(rows) as file:
        pq.write_table(
            table, file, row_group_size=ROW_GROUP, compression="zstd", write_page_checksum=True
        )

    def joined(name: str) -> Iterable[Any]:
        return (np.concatenate([getattr(b, name)[j] for b in batches]) for j in range(c))

    def summed(name: str, lines: Iterable[Any]) -> Iterable[Any]:
        for line in lines:
            sums[name].append(checksum(line))
            yield line

    orders = map(order_of, joined("logits"))
    write_array(named["logits"], (c, n), ARRAYS["logits"], summed("logits", joined("logits")))
    write_array(named["scores"], (c, n), ARRAYS["scores"], joined("scores"))
    write_array(named["order"], (c, n), ARRAYS["order"], summed("order", orders))
    write_array(named["checksums"], (len(CHECKED), c), ARRAYS["checksums"], sums.values())
    files = [rows, *named.values()]
    features = [batch.features for batch in batches if batch.features is not None]
    if features:
        files.append(folder / f"features-{number:03}.npy")
        write_array(files[-1], (n, features[0].shape[1]), np.float16, features)
    return Shard(folder, number, n, {file.name: file.stat().st_size for file in files})


def write_array(file: Path, shape: tuple[int, int], dtype: Any, parts: Iterable[Any]) -> None:
    """Write a ``.npy`` file piece by piece; a full disk is an error here, not in a memory map.

    Args:
        file: Where to.
        shape: Of the whole array.
        dtype: Of its numbers.
        parts: Rows, or blocks of rows, that make up the array in this order.

    Raises:
        DataError: the place cannot be written.
    """
    kind = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    with new_file(file) as temporary, temporary.open("wb") as out:
        np.lib.format.write_array_header_1_0(out, header)
        for part in parts:
            out.write(np.ascontiguousarray(part, dtype).data)


def checksum(line: npt.NDArray[Any]) -> int:
    """CRC-32 of a line of 4-byte numbers after its pieces of 8 KiB were laid over each other.

    Any damage within 8 KiB changes it; only larger ones that cancel bit by bit go unseen.
    """
    bits = np.ascontiguousarray(line).view(np.uint32)
    end = len(bits) // FOLD * FOLD
    folded = np.bitwise_xor.reduce(bits[:end].reshape(-1, FOLD), axis=0)
    return zlib.crc32(bits[end:].data, zlib.crc32(folded.data))


def _size(file: Path) -> int | None:
    """Bytes of a file; None where there is none, or none any more."""
    try:
        return file.stat().st_size
    except OSError:
        return None


def _open_rows(file: Path) -> pq.ParquetFile:
    return pq.ParquetFile(file, memory_map=True, page_checksum_verification=True)


def _damaged(file: Path, what: str) -> DataError:
    return DataError(
        f"{file} is damaged: {what}. Put the file back, or build the index again "
        f"(`surelabel index`)."
    )
