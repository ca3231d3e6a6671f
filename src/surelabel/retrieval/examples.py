"""Some conjunctions and what they find, to look at."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.records import Flags
from surelabel.retrieval.judged import Judged, Literals, judged, precision_of
from surelabel.retrieval.queries import Shape, drawn_around, sets_that_occur
from surelabel.retrieval.query import Query

SHAPES = ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 1))  # one example each
TRIES = 50  # queries drawn for each example, of which the one that most pictures fulfil is shown


@dataclass(frozen=True)
class Ranking:
    """What one query finds, the best first.

    Attributes:
        query: As it is written in a search.
        rows: Row numbers of the pictures, ``(k,)``.
        probabilities: That the whole query holds, the labels taken as independent, ``(k,)``.
        relevant: Whether it does hold, ``(k,)``.
        fulfilled: How many pictures fulfil it.
        precision: Average precision of the whole ranking.
    """

    query: str
    rows: npt.NDArray[np.intp]
    probabilities: npt.NDArray[np.float32]
    relevant: Flags
    fulfilled: int
    precision: float


def examples(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    names: Sequence[str],
    known: npt.ArrayLike | None = None,
    *,
    shapes: Sequence[Shape] = SHAPES,
    k: int = 8,
    seed: int = 0,
) -> list[Ranking]:
    """Draw queries that pictures fulfil and rank the pictures.

    Of each shape some are drawn and the one that most pictures fulfil is kept, so that there is
    something to find.

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        names: Of the labels, ``c``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        shapes: Labels wanted, at least one, and labels unwanted, of each example.
        k: Pictures of each.
        seed: Of the draws.

    Returns:
        One ranking a shape; none for a shape of which no query is fulfilled.

    Raises:
        InputError: shapes differ, a log-odds is not finite, a known target is not 0 or 1, or
            names are not one for each label.

    Example:
        >>> found = examples([[2, -1], [-1, 1]], [[1, 0], [0, 1]], ["cat", "dog"], shapes=[(1, 1)])
        >>> found[0].query, found[0].rows.tolist(), found[0].relevant.tolist()
        ('dog & !cat', [1, 0], [True, False])
    """
    pictures = judged(logits, targets, known)
    if len(names) != pictures.labels:
        raise InputError(
            f"names must be one for each of {pictures.labels} labels. Got {len(names)}: give those "
            f"of the columns, in their order."
        )
    queries = (_telling(pictures, shape, seed) for shape in shapes)
    return [_ranking(pictures, query, names, k) for query in queries if query]


def _telling(pictures: Judged, shape: Shape, seed: int) -> Literals | None:
    wanted, unwanted = shape
    sets = sets_that_occur(pictures.holds[1], wanted)
    if not len(sets) or sum(shape) > pictures.labels:
        return None
    generator = np.random.default_rng((seed, wanted, unwanted))
    found, _ = drawn_around(pictures, sets, unwanted, sample=TRIES, generator=generator)
    return max(found, key=lambda query: np.count_nonzero(pictures.relevant(query)), default=None)


def _ranking(pictures: Judged, query: Literals, names: Sequence[str], k: int) -> Ranking:
    scores, relevant = pictures.scores(query), pictures.relevant(query)
    rows = np.argsort(-scores, kind="stable")[:k]
    rows = rows[np.isfinite(scores[rows])]  # of the others a label is unknown
    wanted, unwanted = (
        tuple(names[column] for column, side in query if side == sign) for sign in (1, -1)
    )
    return Ranking(
        query=str(Query(wanted, unwanted)),
        rows=rows,
        probabilities=np.exp(scores[rows]),
        relevant=relevant[rows],
        fulfilled=int(relevant.sum()),
        precision=precision_of(scores, relevant),
    )
