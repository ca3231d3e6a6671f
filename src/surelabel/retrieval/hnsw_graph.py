"""Search the nearest neighbours of a vector approximately (ANN), with an HNSW graph of a shard.

The graph of shard 0 is stored in ``ann-000.usearch``, and the optional package usearch reads it. It
contains the vectors with 8 bits per value. The graph returns twice as many rows as the result has,
and one more for each removed row. The search computes the exact cosines of these rows.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError, MissingPart
from surelabel.file_readers import check_regular_file
from surelabel.files import atomic_file
from surelabel.retrieval.label_table import RowNumbers
from surelabel.retrieval.shard_checksums import extend_shard_checksum

Vectors16 = npt.NDArray[np.float16]

MAX_NEIGHBOURS = 10_000  # rows that a graph returns; more are found faster by an exact search
_CONNECTIVITY, _EXPANSION = 16, 128  # edges of a node, and candidates while a node is inserted
_CHECKED_BYTES = 1 << 20  # of the file that are in memory for the checksum


@dataclass(frozen=True)
class HnswRecord:
    """Checksum and measured recall of a graph, which ``index.json`` stores.

    Attributes:
        checksum: CRC-32 of the file.
        recall: Mean recall@100 of the search for sampled images, in [0, 1]; see ``graph_recall``.
    """

    checksum: int
    recall: float

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> "HnswRecord":
        """Create a record from an entry of ``index.json``.

        Raises:
            ValueError, KeyError, TypeError: If a field is missing or invalid.
        """
        checksum, recall = entry["checksum"], entry["recall"]
        if type(checksum) is not int or type(recall) is not float or not 0 <= recall <= 1:
            raise ValueError("ann must have a checksum and a recall in [0, 1]")
        return cls(checksum, recall)


@dataclass(frozen=True)
class HnswGraph:
    """Graph of a shard, whose checksum is compared before it is opened.

    Attributes:
        file: File of the graph.
        size: Expected size of the file in bytes.
        checksum: Expected CRC-32 of the file.
        n_rows: Number of rows of the shard, including rows that were removed later.
    """

    file: Path
    size: int
    checksum: int
    n_rows: int

    def is_damaged(self) -> bool:
        """Return whether the file is missing, or its size or checksum does not match."""
        try:
            return self._has_other_size() or checksum_of_graph(self.file) != self.checksum
        except (OSError, DataError):
            return True

    def nearest_rows(self, vector: npt.NDArray[np.floating], count: int) -> RowNumbers:
        """Return the rows that are approximately nearest to a vector by cosine, by row number.

        Args:
            vector: Vector, ``(d,)``.
            count: Maximum number of rows, >= 1.

        Raises:
            DataError: If the file is missing or damaged, or was written by another version of
                usearch. Also if its vectors have another width than ``vector``.
        """
        if self._has_other_size():  # reading a mapping beyond the end of its file would crash
            raise self._damage_error("the file size does not match index.json")
        graph = self._opened
        if graph.ndim != len(vector):
            raise self._damage_error(
                f"the vectors must have {len(vector)} values, got {graph.ndim}"
            )
        count = min(count, self.n_rows)
        graph.expansion_search = max(_EXPANSION, count)
        matches = graph.search(_vectors_with_8_bits(vector[None])[0], count)
        rows = np.unique(np.asarray(matches.keys).astype(np.int64))
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.n_rows:
            raise self._damage_error(f"row numbers must be in [0, {self.n_rows})")
        return rows

    @cached_property
    def _opened(self) -> Any:
        """Return the graph, which is mapped into memory after its checksum was compared."""
        from usearch.index import Index

        if self.is_damaged():
            raise self._damage_error("the checksum does not match")
        try:
            graph = Index.restore(str(self.file), view=True)
        except (RuntimeError, ValueError, KeyError) as error:
            raise self._damage_error(
                "the installed version of usearch cannot read the file"
            ) from error
        if graph is None or len(graph) > self.n_rows:
            raise self._damage_error(f"the graph must have at most {self.n_rows} vectors")
        return graph

    def _has_other_size(self) -> bool:
        check_regular_file(self.file)
        return self.file.stat().st_size != self.size

    def _damage_error(self, reason: str) -> DataError:
        return DataError(
            f"{self.file} is damaged: {reason}. Build the file again "
            f"(`surelabel index {self.file.parent} --ann`)."
        )


def is_usearch_installed() -> bool:
    """Return whether the package that reads graphs is installed; the package is not imported."""
    return find_spec("usearch") is not None


def check_usearch_is_installed() -> None:
    """Check that the package that writes graphs is installed.

    Raises:
        MissingPart: If it is not installed.
    """
    if not is_usearch_installed():
        raise MissingPart(
            "An index for approximate search (--ann) needs the package usearch, which is not "
            "installed. Run pip install 'surelabel[ann]'."
        )


def write_hnsw_graph(
    file: Path,
    width: int,
    blocks: Iterable[tuple[RowNumbers, Vectors16]],
    report: Callable[[int], None],
) -> int:
    """Write the graph of the image vectors of a shard.

    Args:
        file: Path of the graph.
        width: Width of the vectors, d.
        blocks: Row numbers, ``(b,)``, and their vectors, ``(b, d)``.
        report: Function that is called with the number of vectors in the graph after each block.

    Returns:
        The CRC-32 of the file.

    Raises:
        DataError: If the file cannot be written.

    Source:
        Malkov and Yashunin, Efficient and Robust Approximate Nearest Neighbor Search Using
        Hierarchical Navigable Small World Graphs, TPAMI 42 (2020) 824-836, by usearch.
    """
    from usearch.index import Index

    graph = Index(
        ndim=width, metric="cos", dtype="i8", connectivity=_CONNECTIVITY, expansion_add=_EXPANSION
    )
    for rows, vectors in blocks:
        graph.add(rows, _vectors_with_8_bits(vectors))
        report(len(graph))
    with atomic_file(file) as temporary:
        graph.save(str(temporary))
        return checksum_of_graph(temporary)


def checksum_of_graph(file: Path) -> int:
    """Return the CRC-32 of a file."""
    checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(_CHECKED_BYTES):
            checksum = extend_shard_checksum(checksum, np.frombuffer(block, np.uint8))
    return checksum


def _vectors_with_8_bits(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.int8]:
    """Return vectors, ``(n, d)``, scaled and rounded to the range from -127 to 127.

    The largest absolute value of a vector becomes 127; zero vectors stay zero. The cosine of two
    vectors does not depend on their lengths.
    """
    values = np.asarray(vectors, np.float32)
    largest = np.abs(values).max(axis=1, keepdims=True)
    scaled = np.rint(values * (127 / np.maximum(largest, np.float32(1e-12))))
    return np.asarray(scaled, np.int8)
