"""Which conjunctions there are: all, or some drawn fairly among those that are fulfilled."""

from collections.abc import Collection, Iterator
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from surelabel.records import Flags
from surelabel.retrieval.judged import Judged, Literals, Scores

Shape = tuple[int, int]  # of a query: labels wanted, labels unwanted
Sets = npt.NDArray[np.intp]

PATIENCE = 100  # draws for each query asked for; less luck than that means there are hardly any


def shapes(length: int) -> list[Shape]:
    """The shapes of queries of one length, at least one label wanted.

    Example:
        >>> shapes(3)
        [(1, 2), (2, 1), (3, 0)]
    """
    return [(wanted, length - wanted) for wanted in range(1, length + 1)]


def number_of_shape(c: int, shape: Shape) -> int:
    """Queries of one shape: C(c, a) · C(c - a, b).

    Example:
        >>> number_of_shape(80, (2, 3))
        240400160
    """
    wanted, unwanted = shape
    return comb(c, wanted) * comb(max(c - wanted, 0), unwanted)


def shape_of(literals: Literals) -> Shape:
    """How many labels a query wants, and how many it does not want."""
    wanted = sum(sign > 0 for _, sign in literals)
    return wanted, len(literals) - wanted


def every_query(
    judged: Judged, wanted_shapes: Collection[Shape]
) -> Iterator[tuple[Literals, Scores, Flags]]:
    """Every query of some shapes that a picture fulfils, with its scores and what is relevant.

    Depth first: a longer query starts from the sums of a shorter one, and none is tried that
    extends one without relevant pictures.
    """
    on_the_way = {(w, u) for a, b in wanted_shapes for w in range(a + 1) for u in range(b + 1)}

    def longer(
        literals: Literals, shape: Shape, scores: Scores, relevant: Flags
    ) -> Iterator[tuple[Literals, Scores, Flags]]:
        for sign, there in ((1, (shape[0] + 1, shape[1])), (-1, (shape[0], shape[1] + 1))):
            if there not in on_the_way:
                continue
            for column in range(literals[-1][0] + 1 if literals else 0, judged.labels):
                left = relevant & judged.holds[sign][column]
                if left.any():
                    query = (*literals, (column, sign))
                    total = scores + judged.logs[sign][column]
                    if there in wanted_shapes:
                        yield query, total, left
                    yield from longer(query, there, total, left)

    nothing = np.zeros(judged.pictures, np.float32), np.ones(judged.pictures, bool)
    yield from longer((), (0, 0), *nothing)


def sets_that_occur(present: Flags, size: int) -> Sets:
    """All sets of labels that are together in some picture, one a row.

    Args:
        present: Which label is in which picture, ``(c, n)``.
        size: Labels of a set, >= 1.

    Returns:
        Columns in rising order, ``(sets, size)``.
    """
    words = np.pad(present, ((0, 0), (0, -present.shape[1] % 64)))
    bits = np.ascontiguousarray(np.packbits(words, axis=1)).view(np.uint64)
    found: list[Sets] = [np.empty((0, size), np.intp)]

    def longer(chosen: tuple[int, ...], rows: npt.NDArray[np.uint64]) -> None:
        first = chosen[-1] + 1 if chosen else 0
        next_ones = first + np.flatnonzero((bits[first:] & rows).any(axis=1))
        if len(chosen) + 1 == size:
            before = np.tile(np.array(chosen, np.intp), (len(next_ones), 1))
            found.append(np.column_stack([before, next_ones]))
        else:
            for column in next_ones:
                longer((*chosen, int(column)), bits[column] & rows)

    longer((), np.full(bits.shape[1], np.iinfo(np.uint64).max))
    return np.concatenate(found)


def all_around(judged: Judged, sets: Sets, unwanted: int) -> list[Literals]:
    """Every fulfilled query that wants one of the sets and ``unwanted`` other labels not."""
    queries = [
        _query(wanted, others)
        for wanted in sets.tolist()
        for others in combinations(sorted({*range(judged.labels)} - {*wanted}), unwanted)
    ]
    return [query for query in queries if judged.relevant(query).any()]


def drawn_around(
    judged: Judged, sets: Sets, unwanted: int, *, sample: int, generator: np.random.Generator
) -> tuple[list[Literals], int]:
    """Queries drawn with replacement, all fulfilled ones equally likely.

    A set and other labels are drawn evenly; what no picture fulfils is thrown away. The share
    that is kept tells how many fulfilled queries there are.

    Args:
        judged: The pictures.
        sets: All sets of wanted labels that occur, ``(sets, size)``.
        unwanted: How many other labels.
        sample: Fulfilled queries to draw.
        generator: Of the draws.

    Returns:
        The fulfilled queries, and how many were drawn for them. Fewer than ``sample`` come back
        only when ``PATIENCE`` times as many draws gave no more.
    """
    kept: list[Literals] = []
    drawn = 0
    while len(kept) < sample and drawn < PATIENCE * sample:
        drawn += 1
        wanted = sets[generator.integers(len(sets))].tolist()
        others = [j for j in generator.permutation(judged.labels).tolist() if j not in wanted]
        query = _query(wanted, others[:unwanted])
        if judged.relevant(query).any():
            kept.append(query)
    return kept, drawn


def _query(wanted: Collection[int], unwanted: Collection[int]) -> Literals:
    return tuple(sorted([(j, 1) for j in wanted] + [(j, -1) for j in unwanted]))
