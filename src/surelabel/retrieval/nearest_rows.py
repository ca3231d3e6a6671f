"""Find the rows of an index whose image vectors are most similar to an example."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.retrieval.hnsw_graph import MAX_NEIGHBOURS, HnswGraph, is_usearch_installed
from surelabel.retrieval.label_table import RowNumbers
from surelabel.retrieval.shards import Shard


@dataclass(frozen=True)
class NearestRows:
    """Rows of the images that are most similar to an example, to which a search is restricted.

    Attributes:
        rows: Row numbers.
        cosines: Cosine of each row and the example, in [-1, 1].
    """

    rows: RowNumbers
    cosines: npt.NDArray[np.float64]

    def between(self, start: int, stop: int) -> "NearestRows":
        """Return the rows in [start, stop), with row numbers relative to ``start``."""
        is_inside = (self.rows >= start) & (self.rows < stop)
        return NearestRows(self.rows[is_inside] - start, self.cosines[is_inside])

    def cosines_of(self, rows: RowNumbers) -> npt.NDArray[np.float64]:
        """Return the cosines of the given rows, a subset of ``self.rows``."""
        order = np.argsort(self.rows)
        return self.cosines[order[np.searchsorted(self.rows[order], rows)]]


def check_shard_has_vectors(shard: Shard) -> None:
    """Raise an error if a shard has images without image vectors.

    Raises:
        InputError: If the shard has images without image vectors.
    """
    if shard.feature_width is None and len(shard):
        raise InputError(
            f"Sentences and like: terms need image vectors; {shard.folder} contains none. Build "
            "the index again from images (`surelabel index`)."
        )


def feature_blocks_for_search(shard: Shard) -> Iterator[npt.NDArray[np.float16]]:
    """Yield the image vectors of the rows that were not removed, in blocks, ``(b, d)``.

    Raises:
        InputError: If the shard has images without image vectors.
        DataError: If the image vectors are damaged or not finite.
    """
    check_shard_has_vectors(shard)
    for vectors in shard.active_feature_blocks():
        _check_vectors_are_finite(shard, vectors)
        yield vectors


def row_blocks_for_search(shard: Shard) -> Iterator[tuple[RowNumbers, npt.NDArray[np.float16]]]:
    """Yield the numbers of the rows that were not removed, and their image vectors, in blocks.

    Raises:
        InputError, DataError: As for `feature_blocks_for_search`.
    """
    rows, start = np.arange(shard.n_rows), 0
    rows = rows if shard.is_active is None else rows[shard.is_active]
    for vectors in feature_blocks_for_search(shard):
        yield rows[start : start + len(vectors)], vectors
        start += len(vectors)


def _check_vectors_are_finite(shard: Shard, vectors: npt.NDArray[np.float16]) -> None:
    if not np.isfinite(vectors).all():
        raise shard.mapped_files.damage_error("features", "an image vector is not finite")


def nearest_rows_of_shards(
    shards: Sequence[Shard], vector: npt.NDArray[np.floating], count: int
) -> NearestRows:
    """Return the rows whose image vectors have the largest cosines with a vector.

    The rows are sorted by decreasing cosine, then by row number. Removed rows are left out. In
    shards with a graph, the result is approximate: most of the nearest rows are found; see
    ``Index.build_ann``.

    Args:
        shards: Shards of the index, in row order.
        vector: Vector of an image, ``(d,)``.
        count: Maximum number of rows, >= 1.

    Raises:
        InputError: If the index has no image vectors, or vectors of another width.
        DataError: If the image vectors or a graph are damaged, or a vector is not finite.
    """
    best = NearestRows(np.empty(0, np.int64), np.empty(0))
    direction = unit_vectors(np.asarray(vector, np.float32)[None])[0]
    for shard, start in zip(shards, starts_of_shards(shards), strict=True):
        width = shard.feature_width
        if width is not None and width != len(direction):
            raise InputError(
                f"The vector of the example must have the width of the vectors in {shard.folder}, "
                f"{width}; got {len(direction)}. Use the recognizer of the index."
            )
        for rows, vectors in _blocks_of_near_rows(shard, direction, count):
            cosines = _cosines(vectors.astype(np.float32), direction)
            is_near = cosines >= (best.cosines[-1] if len(best.rows) == count else -np.inf)
            best = select_nearest_rows(
                np.append(best.rows, start + rows[is_near]),
                np.append(best.cosines, cosines[is_near]),
                count,
            )
    return best


def _blocks_of_near_rows(
    shard: Shard, direction: npt.NDArray[np.float32], count: int
) -> Iterator[tuple[RowNumbers, npt.NDArray[np.float16]]]:
    """Yield rows that include the nearest ones, and their image vectors, in blocks.

    All rows are read if the shard has no graph for approximate search, if usearch is not installed,
    or if many rows are needed.
    """
    graph = graph_for_search(shard, count)
    if graph is None:
        yield from row_blocks_for_search(shard)
        return
    rows = graph.nearest_rows(direction, _n_neighbours(shard, count))
    if shard.is_active is not None:
        rows = rows[shard.is_active[rows]]
    shard.mapped_files.check_not_truncated()
    vectors = shard.mapped_files.arrays["features"][rows]
    _check_vectors_are_finite(shard, vectors)
    yield rows, vectors


def graph_for_search(shard: Shard, count: int) -> HnswGraph | None:
    """Return the graph that a search for some nearest rows reads, or None if it reads all rows.

    Args:
        shard: Shard of an index.
        count: Number of nearest rows, >= 1.
    """
    if _n_neighbours(shard, count) > min(MAX_NEIGHBOURS, shard.n_rows):
        return None
    return shard.hnsw_graph if is_usearch_installed() else None


def _n_neighbours(shard: Shard, count: int) -> int:
    """Return the number of rows that a graph must return, more than the search needs."""
    return 2 * count + len(shard.removed)


def select_nearest_rows(
    rows: RowNumbers, cosines: npt.NDArray[np.float64], count: int
) -> NearestRows:
    """Return the ``count`` rows with the largest cosines, by decreasing cosine, then row number."""
    order = np.lexsort((rows, -cosines))[:count]
    return NearestRows(rows[order], cosines[order])


def starts_of_shards(shards: Sequence[Shard]) -> list[int]:
    """Return the number of the first row of each shard."""
    return list(accumulate((shard.n_rows for shard in shards), initial=0))[: len(shards)]


def _cosines(
    vectors: npt.NDArray[np.float32], direction: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """Return the cosine of each vector and a vector of length 1; that of a zero vector is 0."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    cosines = (vectors @ direction) / np.maximum(lengths, np.float32(1e-12))
    return np.asarray(cosines, np.float64)


def unit_vectors(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Normalize vectors ``(n, d)`` to length 1; zero vectors remain zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit
