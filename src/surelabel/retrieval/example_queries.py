"""Select example queries with their highest-ranked images, for a report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.retrieval.literal_scores import (
    LiteralScores,
    LiteralTuple,
    average_precision_of_literal_scores,
    compute_literal_scores,
)
from surelabel.retrieval.query import Query
from surelabel.retrieval.query_sampling import (
    QueryShape,
    query_sampling_label_sets,
    sample_queries,
)

EXAMPLE_SHAPES = ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 1))  # one example query per shape
DRAWS_PER_EXAMPLE = 50  # sampled queries, of which one is the example


@dataclass(frozen=True)
class ExampleQuery:
    """A query with its highest-ranked images.

    Attributes:
        query: Query in the syntax of ``parse``.
        rows: Row numbers of at most k images in which all labels of the query are known, sorted by
            decreasing probability, ``(k,)``.
        probabilities: Probability that each image matches the query, if the labels are assumed to
            be independent, ``(k,)``.
        is_relevant: True for images that match the query, boolean, ``(k,)``.
        n_relevant: Number of images that match the query, among all images.
        average_precision: Average precision of the ranking of all images in which all labels of the
            query are known.
    """

    query: str
    rows: npt.NDArray[np.intp]
    probabilities: npt.NDArray[np.float32]
    is_relevant: Flags
    n_relevant: int
    average_precision: float


def select_example_queries(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    names: Sequence[str],
    known: npt.ArrayLike | None = None,
    *,
    shapes: Sequence[QueryShape] = EXAMPLE_SHAPES,
    k: int = 8,
    seed: int = 0,
) -> list[ExampleQuery]:
    """Select one query of each shape, and return the query with its highest-ranked images.

    For each shape, 50 queries that at least one image matches are sampled. The example is the
    sampled query with the most relevant images.

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: Targets, 1 if positive, 0 if negative and NaN if unknown, ``(n, c)``.
        names: Label names, length c.
        known: True for known targets, boolean, ``(n, c)``. If None, all targets except NaN are
            known.
        shapes: Pairs (number of wanted labels, number of unwanted labels), with at least one wanted
            label. One example is selected for each pair.
        k: Maximum number of images for each example.
        seed: Seed of the query sample.

    Returns:
        One example for each shape, in the order of ``shapes``. Shapes whose sampled queries match
        no image, and shapes with more than c labels, are omitted.

    Raises:
        InputError: If the shapes of the arrays differ, a logit is not finite, or a known target is
            not 0 or 1. Also if the number of names differs from the number of labels.

    Example:
        >>> logits, targets = [[2, -1], [-1, 1]], [[1, 0], [0, 1]]
        >>> example, = select_example_queries(logits, targets, ["cat", "dog"], shapes=[(1, 1)])
        >>> example.query, example.rows.tolist(), example.is_relevant.tolist()
        ('dog & !cat', [1, 0], [True, False])
    """
    literal_scores = compute_literal_scores(logits, targets, known)
    if len(names) != literal_scores.n_labels:
        raise InputError(
            "names must contain one name for each of "
            f"{format_count(literal_scores.n_labels, 'label')}; got {len(names)}. Pass the label "
            "names in the order of the columns."
        )
    queries = (_most_fulfilled_example_query(literal_scores, shape, seed) for shape in shapes)
    return [
        _rank_images_of_example_query(literal_scores, query, names, k) for query in queries if query
    ]


def _most_fulfilled_example_query(
    literal_scores: LiteralScores, shape: QueryShape, seed: int
) -> LiteralTuple | None:
    """Sample queries of one shape, and return the query with the most relevant images.

    If no sampled query matches an image, the value is None.
    """
    wanted, unwanted = shape
    sets = query_sampling_label_sets(literal_scores.is_true[1], wanted)
    if not len(sets) or sum(shape) > literal_scores.n_labels:
        return None
    generator = np.random.default_rng((seed, wanted, unwanted))
    queries, _ = sample_queries(
        literal_scores, sets, unwanted, sample_size=DRAWS_PER_EXAMPLE, generator=generator
    )
    return max(
        queries,
        key=lambda query: np.count_nonzero(literal_scores.relevant_images(query)),
        default=None,
    )


def _rank_images_of_example_query(
    literal_scores: LiteralScores, query: LiteralTuple, names: Sequence[str], k: int
) -> ExampleQuery:
    scores = literal_scores.query_scores(query)
    is_relevant = literal_scores.relevant_images(query)
    rows = np.argsort(-scores, kind="stable")[:k]
    rows = rows[np.isfinite(scores[rows])]  # a label is unknown if the score is not finite
    wanted, unwanted = (
        tuple(names[column] for column, literal_sign in query if literal_sign == sign)
        for sign in (1, -1)
    )
    return ExampleQuery(
        query=str(Query.of_labels(wanted, unwanted)),
        rows=rows,
        probabilities=np.exp(scores[rows]),
        is_relevant=is_relevant[rows],
        n_relevant=int(is_relevant.sum()),
        average_precision=average_precision_of_literal_scores(scores, is_relevant),
    )
