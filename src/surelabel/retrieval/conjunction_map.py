"""Mean average precision of image retrieval by conjunctions of labels.

A query has at least one wanted label and any number of unwanted ones. An image is relevant if the
whole query holds. All images are ranked; queries that no image fulfils are counted and left out.
Short queries are all evaluated. Long queries are too many, so some of each shape are sampled.
"""

from collections.abc import Callable, Sequence
from itertools import count
from math import comb

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError
from surelabel.retrieval.literal_scores import (
    LiteralScores,
    average_precision_of_query,
    compute_literal_scores,
)
from surelabel.retrieval.query_average_precision import (
    QueryPrecision,
    ShapePrecision,
    combine_shapes,
)
from surelabel.retrieval.query_sampling import (
    LabelSets,
    QueryShape,
    cooccurring_label_sets,
    fulfilled_queries,
    number_of_queries_of_shape,
    query_shape,
    query_shapes,
    sample_fulfilled_queries,
    walk_fulfilled_queries,
)

Progress = Callable[[int, int], None]

PROGRESS_INTERVAL = 1000  # queries between two progress calls


def number_of_queries(c: int, length: int) -> int:
    """Return the number of queries with exactly ``length`` of ``c`` labels, one or more wanted.

        C(c, n) · (2^n - 1)

    Example:
        >>> number_of_queries(80, 2)
        9480
    """
    return comb(c, length) * int(2**length - 1)


def mean_average_precision_of_queries(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    max_literals: int = 5,
    max_exact_literals: int = 3,
    sample_size: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> QueryPrecision:
    """Rank all images for every conjunction and average the average precision.

        s = Σ_{j wanted} log p_j + Σ_{k unwanted} log(1 - p_k)
        mAP = mean over queries of Σ_i (R_i - R_{i-1}) · P_i     over distinct s, highest first

    For a sampled shape, with a wanted and b unwanted labels, the mean over ``sample_size``
    fulfilled queries stands for all of them, with weight C(c, a) · C(c - a, b) · P(fulfilled).

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: 1 for positive, 0 for negative, NaN for unknown targets, ``(n, c)``.
        known: True if the target is known, ``(n, c)``; if omitted, all targets but NaN are known.
            A query ranks only the images in which all its labels are known.
        max_literals: Largest number of labels in a query, >= 1.
        max_exact_literals: Queries of up to this many labels are all evaluated, >= 0.
        sample_size: Number of queries sampled for each shape of longer queries, >= 2; all queries
            if there are no more.
        seed: Seed of the query sample.
        progress: Called regularly with the number of evaluated queries and an upper bound of the
            number to evaluate.

    Returns:
        Means, standard errors and counts of all queries, of each length and of each shape.

    Raises:
        InputError: If shapes differ, a log-odds is not finite, or a known target is not 0 or 1.
        ConfigError: If a setting is not a whole number or too small.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        section 5.3 and eq. 23.

    Differs:
        The paper does not define the precision of queries without a relevant image; we leave them
        out and count them. It evaluates all queries, 770 million for 80 labels; we sample long
        ones. Scores come from log-odds, where products of probabilities saturate, in float32.

    Example:
        >>> precision = mean_average_precision_of_queries([[2, -1], [-1, 1], [0, -3]], np.eye(3, 2))
        >>> precision.mean, precision.queries, precision.skipped
        (1.0, {1: 2, 2: 2}, {1: 0, 2: 1})
    """
    _check_settings(
        max_literals=(max_literals, 1),
        max_exact_literals=(max_exact_literals, 0),
        sample_size=(sample_size, 2),
    )
    literal_scores = compute_literal_scores(logits, targets, known)
    c = literal_scores.n_labels
    shapes = [s for length in range(1, min(max_literals, c) + 1) for s in query_shapes(length)]
    exact_shapes = [
        shape
        for shape in shapes
        if sum(shape) <= max_exact_literals or number_of_queries_of_shape(c, shape) <= sample_size
    ]
    other_shapes = [shape for shape in shapes if shape not in exact_shapes]
    total = sum(number_of_queries_of_shape(c, shape) for shape in exact_shapes)
    total += sample_size * len(other_shapes)
    count_query = _query_counter(progress, total)
    precisions = _evaluate_all_queries(literal_scores, exact_shapes, count_query)
    sets = {
        wanted: cooccurring_label_sets(literal_scores.is_true[1], wanted)
        for wanted in {wanted for wanted, _ in other_shapes}
    }
    for shape in other_shapes:
        generator = np.random.default_rng((seed, *shape))
        precisions[shape] = _evaluate_sampled_queries(
            literal_scores, sets[shape[0]], shape, sample_size, generator, count_query
        )
    if progress:
        progress(total, total)
    return combine_shapes([precisions[shape] for shape in shapes], seed)


def _evaluate_all_queries(
    literal_scores: LiteralScores,
    shapes: Sequence[QueryShape],
    count_query: Callable[[], None],
) -> dict[QueryShape, ShapePrecision]:
    """Return the precision of all fulfilled queries of some shapes, in one walk."""
    precisions: dict[QueryShape, list[float]] = {shape: [] for shape in shapes}
    for query, scores, is_relevant in walk_fulfilled_queries(literal_scores, precisions):
        precisions[query_shape(query)].append(average_precision_of_query(scores, is_relevant))
        count_query()
    return {
        shape: _exact_precision(literal_scores, shape, values)
        for shape, values in precisions.items()
    }


def _evaluate_sampled_queries(
    literal_scores: LiteralScores,
    sets: LabelSets,
    shape: QueryShape,
    sample_size: int,
    generator: np.random.Generator,
    count_query: Callable[[], None],
) -> ShapePrecision:
    """Return the precision of one shape: of all candidates if they are few, else of a sample."""
    candidates = len(sets) * comb(literal_scores.n_labels - shape[0], shape[1])
    if candidates <= sample_size:
        queries, draws = fulfilled_queries(literal_scores, sets, shape[1]), 0
    else:
        queries, draws = sample_fulfilled_queries(
            literal_scores, sets, shape[1], sample_size=sample_size, generator=generator
        )
    precisions = []
    for query in queries:
        scores = literal_scores.query_scores(query)
        is_relevant = literal_scores.relevant_images(query)
        precisions.append(average_precision_of_query(scores, is_relevant))
        count_query()
    if not draws:
        return _exact_precision(literal_scores, shape, precisions)
    n = len(precisions)
    return ShapePrecision(
        *shape,
        queries=number_of_queries_of_shape(literal_scores.n_labels, shape),
        fulfilled=candidates * n / draws,
        evaluated=n,
        mean=_mean_or_nan(precisions),
        standard_error=float(np.std(precisions, ddof=1) / n**0.5) if n > 1 else np.nan,
        draws=draws,
        sampled_queries=tuple(queries),
    )


def _exact_precision(
    literal_scores: LiteralScores, shape: QueryShape, precisions: Sequence[float]
) -> ShapePrecision:
    n = len(precisions)
    return ShapePrecision(
        *shape,
        queries=number_of_queries_of_shape(literal_scores.n_labels, shape),
        fulfilled=n,
        evaluated=n,
        mean=_mean_or_nan(precisions),
        standard_error=0.0,
    )


def _query_counter(progress: Progress | None, total: int) -> Callable[[], None]:
    """Return a function that counts evaluated queries and reports progress at intervals."""
    numbers = count(1)

    def count_query() -> None:
        n_done = next(numbers)
        if progress and n_done % PROGRESS_INTERVAL == 0:
            progress(n_done, total)

    return count_query


def _check_settings(**settings: tuple[int, int]) -> None:
    """Raise ConfigError if a setting is not a whole number of at least its minimum."""
    for name, (value, minimum) in settings.items():
        if value != int(value) or value < minimum:
            raise ConfigError(f"{name} must be a whole number of at least {minimum}; got {value}.")


def _mean_or_nan(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
