"""One shard of an index: five files of the same rows, written once and never changed.

    rows-000.parquet     path, bytes, mtime_ns, hash of each picture
    logits-000.npy       log-odds, float32, label-major (c, n)
    scores-000.npy       raw scores that break ties, float32, (c, n)
    order-000.npy        rows of each label by falling logit, int32, (c, n)
    features-000.npy     image vectors, float16, (n, d), where there are any

Log-odds are float32: float16 has steps of 0.03 near 40 and would tie what is not tied.
"""

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

ROW_GROUP = 1 << 16


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
        """The inverse of `entry`."""
        removed = tuple(entry["removed"])
        return cls(folder, entry["number"], entry["rows"], dict(entry["files"]), removed)

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
        return self._read("rows", "parquet", lambda file: pq.ParquetFile(file, memory_map=True))

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
            if not file.is_file() or file.stat().st_size != size:
                came = f"{file.stat().st_size} bytes" if file.is_file() else "nothing"
                raise _damaged(file, f"expected {size} bytes, found {came}")
        shapes = {name: getattr(self.sorted, name).shape for name in ("logits", "scores", "order")}
        for name, shape in shapes.items():
            if shape != (c, self.size):
                raise _damaged(self._file(name, "npy"), f"expected {(c, self.size)}, found {shape}")
        if self._rows.metadata.num_rows != self.size:
            raise _damaged(self._file("rows", "parquet"), f"expected {self.size} rows")
        if self.features is not None and len(self.features) != self.size:
            raise _damaged(self._file("features", "npy"), f"expected {self.size} rows")

    def places(self, paths: Sequence[str]) -> npt.NDArray[np.int64]:
        """Rows of those of ``paths`` that are here and living."""
        here = pc.is_in(self.table["path"], value_set=pa.array(paths, pa.string()))
        mask = here.to_numpy()
        return np.flatnonzero(mask if self.living is None else mask & self.living)

    def without(self, rows: Iterable[int]) -> "Shard":
        """The same shard with these rows removed too."""
        return replace(self, removed=tuple(sorted({*self.removed, *map(int, rows)})))

    def batch(self) -> Batch:
        """The living rows."""
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
    named = {name: folder / f"{name}-{number:03}.npy" for name in ("logits", "scores", "order")}
    rows = folder / f"rows-{number:03}.parquet"
    with new_file(rows) as file:
        pq.write_table(table, file, row_group_size=ROW_GROUP, compression="zstd")

    def joined(name: str) -> Iterable[Any]:
        return (np.concatenate([getattr(b, name)[j] for b in batches]) for j in range(c))

    _write_array(named["logits"], (c, n), np.float32, joined("logits"))
    _write_array(named["scores"], (c, n), np.float32, joined("scores"))
    _write_array(named["order"], (c, n), np.int32, map(order_of, joined("logits")))
    files = [rows, *named.values()]
    features = [batch.features for batch in batches if batch.features is not None]
    if features:
        files.append(folder / f"features-{number:03}.npy")
        everything = (row for part in features for row in part)
        _write_array(files[-1], (n, features[0].shape[1]), np.float16, everything)
    return Shard(folder, number, n, {file.name: file.stat().st_size for file in files})


def _write_array(file: Path, shape: tuple[int, int], dtype: Any, lines: Iterable[Any]) -> None:
    with new_file(file) as temporary:
        array = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
        for place, line in enumerate(lines):
            array[place] = line
        array.flush()


def _damaged(file: Path, what: str) -> DataError:
    return DataError(
        f"{file} is damaged: {what}. Put the file back, or build the index again "
        f"(`surelabel index`)."
    )
