"""Select rows whose vectors are close to the vectors of all rows, by greedy facility location."""

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError
from surelabel.records import RowIndices
from surelabel.shapes import check_shapes

MAX_REFERENCE_ROWS = 4096  # more rows are sampled to estimate the mean distance
ROWS_PER_BLOCK = 1024  # candidates whose distances are computed at once


def facility_location_order(
    vectors: npt.NDArray[np.floating],
    selected: Sequence[int] | RowIndices,
    candidates: Sequence[int] | RowIndices,
    count: int,
    *,
    seed: int = 0,
) -> RowIndices:
    """Select the rows that most reduce the mean distance of all rows to the nearest selected row.

    Rows are selected one after the other, by the largest gain. The gain of a candidate is the
    reduction of the Euclidean distance to the nearest selected row, summed over all rows. The
    vectors of the selected rows are thus spread over the vectors of all rows, densest regions
    first.

    Args:
        vectors: Vectors of n rows, ``(n, d)``.
        selected: Indices of the rows that are selected already.
        candidates: Indices of the rows that can be selected.
        count: Number of rows to select, >= 0. If there are fewer candidates, all are selected.
        seed: Seed of the sample of rows over which gains are computed, if n is above 4,096.

    Returns:
        Indices of the selected candidates, in the order of their selection.

    Raises:
        InputError: If ``vectors`` is not two-dimensional, or ``count`` is negative.

    Source:
        Facility location and its greedy algorithm: Nemhauser, Wolsey and Fisher, An analysis of
        approximations for maximizing submodular set functions, Mathematical Programming 1978. Lazy
        evaluation: Minoux, Accelerated greedy algorithms for maximizing submodular set functions,
        1978.

    Differs:
        If no row is selected yet, all distances are initialized with an upper bound.

    Example:
        >>> vectors = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
        >>> facility_location_order(vectors, [], range(5), 2).tolist()
        [2, 3]
    """
    points: Array = np.asarray(vectors, dtype=np.float64)
    check_shapes(vectors=(points, "n d"))
    if count < 0:
        raise InputError(f"count must be >= 0; got {count}. Give the number of rows to select.")
    references = points[_reference_rows(len(points), seed)]
    nearest = np.full(len(references), 2 * np.linalg.norm(points, axis=1).max(initial=0.0))
    for block in _row_blocks(selected):
        nearest = np.minimum(nearest, _distances(points[block], references).min(axis=0))
    heap: list[tuple[float, int]] = []
    for block in _row_blocks(candidates):
        gains = (nearest - _distances(points[block], references)).clip(0).sum(axis=1)
        heap += zip((-gains).tolist(), block.tolist(), strict=True)
    heapq.heapify(heap)
    order = list[int]()
    while heap and len(order) < count:
        _, row = heapq.heappop(heap)
        distances = _distances(points[[row]], references)[0]
        entry = (-float((nearest - distances).clip(0).sum()), row)
        if heap and entry > heap[0]:  # gains only decrease, so other entries are upper bounds
            heapq.heappush(heap, entry)
            continue
        order.append(row)
        nearest = np.minimum(nearest, distances)
    return np.array(order, dtype=np.int64)


def _reference_rows(n_rows: int, seed: int) -> RowIndices:
    """Return the rows over which gains are computed: all rows or a random sample."""
    if n_rows <= MAX_REFERENCE_ROWS:
        return np.arange(n_rows)
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_rows, MAX_REFERENCE_ROWS, replace=False))


def _row_blocks(rows: Sequence[int] | RowIndices) -> list[RowIndices]:
    indices = np.asarray(rows, dtype=np.int64)
    return [
        indices[start : start + ROWS_PER_BLOCK] for start in range(0, len(indices), ROWS_PER_BLOCK)
    ]


def _distances(vectors: Array, points: Array) -> Array:
    """Return the Euclidean distances of m vectors to n points, ``(m, n)``."""
    squares = (vectors**2).sum(axis=1)[:, None] + (points**2).sum(axis=1) - 2 * vectors @ points.T
    distances: Array = np.sqrt(squares.clip(0))
    return distances
