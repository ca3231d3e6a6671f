"""Average precision over queries: of each shape, each length and all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.retrieval.judged import Literals


@dataclass(frozen=True)
class Cell:
    """Queries of one shape.

    Attributes:
        wanted: Labels that such a query wants.
        unwanted: Labels that it does not want.
        queries: How many there are.
        fulfilled: How many of them some picture fulfils; an estimate when they were drawn.
        judged: Fulfilled queries whose average precision was taken.
        mean: Of the average precision of the fulfilled ones, in [0, 1]; NaN when there is none.
        error: Standard error of ``mean``; 0 when all of them were judged, NaN of less than two.
        drawn: Draws that it took; 0 when all were judged.
        sample: The queries that were drawn, with literals ``(column, sign)``; empty when all were
            judged.
    """

    wanted: int
    unwanted: int
    queries: int
    fulfilled: float
    judged: int
    mean: float
    error: float
    drawn: int = 0
    sample: tuple[Literals, ...] = ()


@dataclass(frozen=True)
class Point:
    """Mean average precision at one length of queries: a point of the curve.

    Attributes:
        length: Labels in a query.
        mean: Over its fulfilled queries, each weighing the same, in [0, 1]; NaN without any.
        error: Standard error; 0 when all were judged.
    """

    length: int
    mean: float
    error: float


@dataclass(frozen=True)
class QueryPrecision:
    """Average precision over queries.

    Attributes:
        mean: Over all queries that a picture fulfils, each weighing the same, in [0, 1]; NaN when
            there is none.
        error: Its standard error; 0 when all queries were judged.
        cells: The same of each shape of queries, short ones first.
        curve: The same of each length.
        seed: Of the draws.
    """

    mean: float
    error: float
    cells: tuple[Cell, ...]
    curve: tuple[Point, ...]
    seed: int

    @property
    def per_length(self) -> dict[int, float]:
        """Mean average precision of queries of each number of labels."""
        return {point.length: point.mean for point in self.curve}

    @property
    def queries(self) -> dict[int, int]:
        """How many were judged, for each number of labels."""
        return {p.length: sum(cell.judged for cell in self._of(p.length)) for p in self.curve}

    @property
    def skipped(self) -> dict[int, int]:
        """How many no picture fulfils, for each number of labels; an estimate where drawn."""
        return {
            p.length: round(sum(cell.queries - cell.fulfilled for cell in self._of(p.length)))
            for p in self.curve
        }

    def _of(self, length: int) -> list[Cell]:
        return [cell for cell in self.cells if cell.wanted + cell.unwanted == length]


def combined(cells: Sequence[Cell], seed: int) -> QueryPrecision:
    """Put shapes together, each weighing as much as it has fulfilled queries."""
    curve = []
    for length in sorted({cell.wanted + cell.unwanted for cell in cells}):
        mean, error = _mean_and_error([c for c in cells if c.wanted + c.unwanted == length])
        curve.append(Point(length, mean, error))
    return QueryPrecision(*_mean_and_error(cells), tuple(cells), tuple(curve), seed)


def _mean_and_error(cells: Sequence[Cell]) -> tuple[float, float]:
    """Mean over the fulfilled queries of all cells, and its standard error.

    What is uncertain of a drawn cell is its mean and how many fulfilled queries it has.
    """
    cells = [cell for cell in cells if cell.judged]
    if not cells:
        return float("nan"), float("nan")
    weights, means, errors = (
        np.array([getattr(cell, name) for cell in cells]) for name in ("fulfilled", "mean", "error")
    )
    mean = np.average(means, weights=weights)
    of_weight = np.array([1 / c.judged - 1 / c.drawn if c.drawn else 0.0 for c in cells])
    spread = errors**2 + of_weight * (means - mean) ** 2
    return float(mean), float(np.sqrt(((weights / weights.sum()) ** 2 * spread).sum()))
