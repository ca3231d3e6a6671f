"""Average the precision of queries by query shape, by query length and over all queries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.retrieval.literal_scores import LiteralTuple


@dataclass(frozen=True)
class ShapePrecision:
    """Mean average precision of the queries of one shape.

    The shape of a query is its number of wanted and of unwanted labels. A query is fulfilled if at
    least one image matches the query.

    Attributes:
        wanted: Number of wanted labels in each query.
        unwanted: Number of unwanted labels in each query.
        queries: Number of queries of the shape.
        fulfilled: Number of fulfilled queries. If queries were sampled, the number is an estimate.
        evaluated: Number of fulfilled queries whose average precision was computed.
        mean: Mean average precision of the fulfilled queries, in [0, 1]. If no query is fulfilled,
            the mean is NaN.
        standard_error: Standard error of ``mean``. If all queries were evaluated, the value is 0.
            If fewer than two sampled queries were evaluated, the value is NaN.
        draws: Number of sampled queries, including queries that are not fulfilled. If all queries
            were evaluated, the number is 0.
        sampled_queries: Fulfilled queries of the sample, each a tuple of literals
            ``(column, sign)``. If all queries were evaluated, ``sampled_queries`` is empty.
    """

    wanted: int
    unwanted: int
    queries: int
    fulfilled: float
    evaluated: int
    mean: float
    standard_error: float
    draws: int = 0
    sampled_queries: tuple[LiteralTuple, ...] = ()


@dataclass(frozen=True)
class LengthPrecision:
    """Mean average precision of the queries of one length.

    Attributes:
        length: Number of labels in each query.
        mean: Mean average precision of the queries that at least one image matches, in [0, 1]. All
            queries have equal weights. If no image matches any query, the mean is NaN.
        standard_error: Standard error of ``mean``. If all queries were evaluated, the value is 0.
            If no query is fulfilled, or only one sampled query of a shape was evaluated, the value
            is NaN.
    """

    length: int
    mean: float
    standard_error: float


@dataclass(frozen=True)
class QueryAveragePrecision:
    """Mean average precision over all queries, by query shape and by query length.

    A query is fulfilled if at least one image matches the query.

    Attributes:
        mean: Mean average precision of all fulfilled queries, with equal weights, in [0, 1]. If no
            query is fulfilled, the mean is NaN.
        standard_error: Standard error of ``mean``. If all queries were evaluated, the value is 0.
            If no query is fulfilled, or only one sampled query of a shape was evaluated, the value
            is NaN.
        by_shape: Mean average precision of each query shape, short queries first.
        curve: Mean average precision of each query length, in increasing order of length.
        seed: Seed of the query sample.
    """

    mean: float
    standard_error: float
    by_shape: tuple[ShapePrecision, ...]
    curve: tuple[LengthPrecision, ...]
    seed: int

    @property
    def per_length(self) -> dict[int, float]:
        """Return the mean average precision by query length."""
        return {point.length: point.mean for point in self.curve}

    @property
    def queries(self) -> dict[int, int]:
        """Return the number of evaluated queries by query length."""
        return {
            point.length: sum(shape.evaluated for shape in self._shapes_of(point.length))
            for point in self.curve
        }

    @property
    def skipped(self) -> dict[int, int]:
        """Return the number of queries that no image matches, by query length.

        If the queries of a shape of this length were sampled, the number is an estimate.
        """
        return {
            point.length: round(
                sum(shape.queries - shape.fulfilled for shape in self._shapes_of(point.length))
            )
            for point in self.curve
        }

    def _shapes_of(self, length: int) -> list[ShapePrecision]:
        return [shape for shape in self.by_shape if shape.wanted + shape.unwanted == length]


def query_average_precision_of_shapes(
    shapes: Sequence[ShapePrecision], seed: int
) -> QueryAveragePrecision:
    """Average the results of query shapes, weighted by the number of fulfilled queries.

    Args:
        shapes: Results of each shape.
        seed: Seed of the query sample.
    """
    curve = []
    for length in sorted({shape.wanted + shape.unwanted for shape in shapes}):
        of_length = [shape for shape in shapes if shape.wanted + shape.unwanted == length]
        mean, error = _mean_query_average_precision(of_length)
        curve.append(LengthPrecision(length, mean, error))
    return QueryAveragePrecision(
        *_mean_query_average_precision(shapes), tuple(shapes), tuple(curve), seed
    )


def _mean_query_average_precision(shapes: Sequence[ShapePrecision]) -> tuple[float, float]:
    """Return the mean average precision over several shapes, and the standard error of the mean.

    Shapes are weighted by their number of fulfilled queries. If queries were sampled, the standard
    error includes the error of these weights. If no query was evaluated, both are NaN.
    """
    shapes = [shape for shape in shapes if shape.evaluated]
    if not shapes:
        return float("nan"), float("nan")
    weights, means, errors = (
        np.array([getattr(shape, name) for shape in shapes])
        for name in ("fulfilled", "mean", "standard_error")
    )
    mean = np.average(means, weights=weights)
    relative_weight_variance = np.array(
        [1 / shape.evaluated - 1 / shape.draws if shape.draws else 0.0 for shape in shapes]
    )
    variance = errors**2 + relative_weight_variance * (means - mean) ** 2
    return float(mean), float(np.sqrt(((weights / weights.sum()) ** 2 * variance).sum()))
