"""Enumerate or sample uniformly the fulfilled queries, which at least one image matches."""

from collections.abc import Collection, Iterator
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags
from surelabel.retrieval.literal_scores import LiteralScores, LiteralTuple, LogProbabilities

QueryShape = tuple[int, int]  # number of wanted labels, number of unwanted labels
LabelSets = npt.NDArray[np.intp]

MAX_DRAWS_PER_QUERY = 100  # sampling stops after this many draws for each requested query


def query_sampling_shapes(length: int) -> list[QueryShape]:
    """Return the shapes of all queries of one length that have at least one wanted label.

    A shape is a pair (number of wanted labels, number of unwanted labels).

    Example:
        >>> query_sampling_shapes(3)
        [(1, 2), (2, 1), (3, 0)]
    """
    return [(wanted, length - wanted) for wanted in range(1, length + 1)]


def number_of_queries_for_query_sampling(c: int, shape: QueryShape) -> int:
    """Return the number of queries of one shape that can be formed from ``c`` labels.

        C(c, a) · C(c - a, b)

    Here a is the number of wanted labels and b is the number of unwanted labels in ``shape``, and
    C(c, a) is the binomial coefficient.

    Example:
        >>> number_of_queries_for_query_sampling(80, (2, 3))
        240400160
    """
    wanted, unwanted = shape
    return comb(c, wanted) * comb(max(c - wanted, 0), unwanted)


def query_sampling_shape(literals: LiteralTuple) -> QueryShape:
    """Return the number of wanted labels and the number of unwanted labels of a query."""
    wanted = sum(sign > 0 for _, sign in literals)
    return wanted, len(literals) - wanted


def walk_fulfilled_queries_without_sampling(
    literal_scores: LiteralScores, shapes: Collection[QueryShape]
) -> Iterator[tuple[LiteralTuple, LogProbabilities, Flags]]:
    """Yield the fulfilled queries of given ``shapes``, with their scores and relevant images.

    Queries are enumerated depth-first. The scores of a longer query are computed from the scores of
    a shorter query. A query without relevant images is not extended.

    Args:
        literal_scores: Log probabilities and truth values of all literals.
        shapes: Pairs (number of wanted labels, number of unwanted labels) of the queries.
    """
    visited_shapes = {(w, u) for a, b in shapes for w in range(a + 1) for u in range(b + 1)}

    def extend(
        literals: LiteralTuple, shape: QueryShape, scores: LogProbabilities, is_relevant: Flags
    ) -> Iterator[tuple[LiteralTuple, LogProbabilities, Flags]]:
        extended_shapes = ((1, (shape[0] + 1, shape[1])), (-1, (shape[0], shape[1] + 1)))
        for sign, extended_shape in extended_shapes:
            if extended_shape not in visited_shapes:
                continue
            first_column = literals[-1][0] + 1 if literals else 0
            for column in range(first_column, literal_scores.n_labels):
                still_relevant = is_relevant & literal_scores.is_true[sign][column]
                if still_relevant.any():
                    query = (*literals, (column, sign))
                    query_scores = scores + literal_scores.log_probabilities[sign][column]
                    if extended_shape in shapes:
                        yield query, query_scores, still_relevant
                    yield from extend(query, extended_shape, query_scores, still_relevant)

    n = literal_scores.n_images
    yield from extend((), (0, 0), np.zeros(n, np.float32), np.ones(n, bool))


def query_sampling_label_sets(is_positive: Flags, size: int) -> LabelSets:
    """Return all sets of ``size`` labels that are all positive in at least one image.

    Args:
        is_positive: True for positive targets, ``(c, n)``.
        size: Number of labels in a set, >= 1.

    Returns:
        Columns of the labels of each set in increasing order, ``(sets, size)``.
    """
    padded = np.pad(is_positive, ((0, 0), (0, -is_positive.shape[1] % 64)))
    bits = np.ascontiguousarray(np.packbits(padded, axis=1)).view(np.uint64)
    blocks: list[LabelSets] = [np.empty((0, size), np.intp)]

    def extend(columns: tuple[int, ...], images: npt.NDArray[np.uint64]) -> None:
        first = columns[-1] + 1 if columns else 0
        next_columns = first + np.flatnonzero((bits[first:] & images).any(axis=1))
        if len(columns) + 1 == size:
            prefix = np.tile(np.array(columns, np.intp), (len(next_columns), 1))
            blocks.append(np.column_stack([prefix, next_columns]))
        else:
            for column in next_columns:
                extend((*columns, int(column)), bits[column] & images)

    extend((), np.full(bits.shape[1], np.iinfo(np.uint64).max))
    return np.concatenate(blocks)


def fulfilled_queries_without_sampling(
    literal_scores: LiteralScores, sets: LabelSets, unwanted: int
) -> list[LiteralTuple]:
    """Return all fulfilled queries that combine a set of wanted labels with unwanted labels.

    Args:
        literal_scores: Log probabilities and truth values of all literals.
        sets: Sets of wanted labels, ``(sets, size)``.
        unwanted: Number of unwanted labels in each query.
    """
    labels = {*range(literal_scores.n_labels)}
    queries = [
        _sorted_query_sampling_literals(wanted, others)
        for wanted in sets.tolist()
        for others in combinations(sorted(labels - {*wanted}), unwanted)
    ]
    return [query for query in queries if literal_scores.relevant_images(query).any()]


def sample_queries(
    literal_scores: LiteralScores,
    sets: LabelSets,
    unwanted: int,
    *,
    sample_size: int,
    generator: np.random.Generator,
) -> tuple[list[LiteralTuple], int]:
    """Sample fulfilled queries uniformly with replacement.

    A set of wanted labels and a set of unwanted labels are sampled uniformly, and queries that no
    image matches are rejected. The acceptance rate yields an estimate of the number of fulfilled
    queries.

    Args:
        literal_scores: Log probabilities and truth values of all literals.
        sets: All sets of wanted labels that are all positive in at least one image,
            ``(sets, size)``, at least one set.
        unwanted: Number of unwanted labels in each query, at most the number of other labels.
        sample_size: Number of fulfilled queries to sample.
        generator: Random generator.

    Returns:
        The fulfilled queries, and the number of sampled queries including rejected queries.
        Sampling stops after ``MAX_DRAWS_PER_QUERY * sample_size`` sampled queries, so there may be
        fewer than ``sample_size`` fulfilled queries.
    """
    queries: list[LiteralTuple] = []
    draws = 0
    while len(queries) < sample_size and draws < MAX_DRAWS_PER_QUERY * sample_size:
        draws += 1
        wanted = sets[generator.integers(len(sets))].tolist()
        permutation = generator.permutation(literal_scores.n_labels).tolist()
        others = [column for column in permutation if column not in wanted]
        query = _sorted_query_sampling_literals(wanted, others[:unwanted])
        if literal_scores.relevant_images(query).any():
            queries.append(query)
    return queries, draws


def _sorted_query_sampling_literals(
    wanted: Collection[int], unwanted: Collection[int]
) -> LiteralTuple:
    """Return the literals of wanted and unwanted columns, sorted by column."""
    return tuple(sorted([(j, 1) for j in wanted] + [(j, -1) for j in unwanted]))
