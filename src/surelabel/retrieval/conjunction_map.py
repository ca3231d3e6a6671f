"""Compute the mean average precision of image retrieval by conjunctions of labels.

A query has at least one wanted label and any number of unwanted labels. An image is relevant if all
wanted labels are positive and all unwanted labels are negative. A query is fulfilled if at least
one image is relevant. Queries that are not fulfilled are excluded, and their number is returned or
estimated.

The shape of a query is its number of wanted and of unwanted labels. All short queries are
evaluated. There are too many long queries, so a sample of the queries of each long shape is
evaluated.
"""

from collections.abc import Callable, Sequence
from itertools import count
from math import comb

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError
from surelabel.progress import Progress
from surelabel.retrieval.literal_scores import (
    LiteralScores,
    average_precision_of_literal_scores,
    compute_literal_scores,
)
from surelabel.retrieval.query_average_precision import (
    QueryAveragePrecision,
    ShapePrecision,
    query_average_precision_of_shapes,
)
from surelabel.retrieval.query_sampling import (
    LabelSets,
    QueryShape,
    fulfilled_queries_without_sampling,
    number_of_queries_for_query_sampling,
    query_sampling_label_sets,
    query_sampling_shape,
    query_sampling_shapes,
    sample_queries,
    walk_fulfilled_queries_without_sampling,
)

PROGRESS_INTERVAL = 1000  # queries between two progress calls


def number_of_queries_in_conjunction_map(c: int, length: int) -> int:
    """Return the number of queries with ``length`` of ``c`` labels and at least one wanted label.

        C(c, n) · (2^n - 1)

    Here n is the length, and C(c, n) is the binomial coefficient.

    Example:
        >>> number_of_queries_in_conjunction_map(80, 2)
        9480
    """
    return comb(c, length) * int(2**length - 1)


def mean_average_precision_of_conjunctions(
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    max_literals: int = 5,
    max_exact_literals: int = 3,
    sample_size: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> QueryAveragePrecision:
    """Compute the mean average precision of image rankings over conjunctions of labels.

        s = Σ_{j wanted} log p_j + Σ_{k unwanted} log(1 - p_k)
        mAP = mean over queries of Σ_i (R_i - R_{i-1}) · P_i     over distinct s, highest first

    Here s is the score of an image, p_j is the probability of label j, and P_i and R_i are
    precision and recall at the i-th distinct score. A query is fulfilled if at least one image is
    relevant; only fulfilled queries have an average precision. The shape of a query is its number
    of wanted and of unwanted labels. If the queries of a shape are sampled, the mean over
    ``sample_size`` fulfilled queries estimates the mean over all fulfilled queries of the shape.
    The weight of a shape is its number of fulfilled queries, which is estimated for a sample.

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: Targets, 1 if positive, 0 if negative and NaN if unknown, ``(n, c)``.
        known: True for known targets, boolean, ``(n, c)``. If None, all targets except NaN are
            known. A query ranks only the images in which all its labels are known.
        max_literals: Largest number of labels in a query, >= 1.
        max_exact_literals: Largest number of labels for which all queries are evaluated, >= 0.
        sample_size: Number of fulfilled queries sampled for each shape of longer queries, >= 2.
            After 100 times as many sampled queries, sampling stops. If the wanted labels of at most
            ``sample_size`` queries of a shape are all positive in one image, all queries are
            evaluated.
        seed: Seed of the query sample.
        progress: Function that is called after every 1000 evaluated queries and at the end. The
            arguments are the number of evaluated queries and an upper bound of this number. In the
            last call, both arguments are the upper bound.

    Returns:
        Mean, standard error and counts for all queries, for each length and for each shape.

    Raises:
        InputError: If shapes differ, a logit is not finite, or a known target is not 0 or 1.
        ConfigError: If ``max_literals``, ``max_exact_literals`` or ``sample_size`` is not a whole
            number, or is below its minimum.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        section 5.3 and eq. 23.

    Differs:
        The paper does not define the precision of queries without a relevant image; this function
        excludes and counts these queries. The paper evaluates all queries, 770 million for 80
        labels; here, long queries are sampled. Scores are computed from log-odds, because float32
        probabilities close to 1 are rounded to 1.

    Example:
        >>> logits = [[2, -1], [-1, 1], [0, -3]]
        >>> precision = mean_average_precision_of_conjunctions(logits, np.eye(3, 2))
        >>> precision.mean, precision.queries, precision.skipped
        (1.0, {1: 2, 2: 2}, {1: 0, 2: 1})
    """
    _check_conjunction_map_settings(
        max_literals=(max_literals, 1),
        max_exact_literals=(max_exact_literals, 0),
        sample_size=(sample_size, 2),
    )
    literal_scores = compute_literal_scores(logits, targets, known)
    c = literal_scores.n_labels
    shapes = [
        s for length in range(1, min(max_literals, c) + 1) for s in query_sampling_shapes(length)
    ]
    exact_shapes = [
        shape
        for shape in shapes
        if sum(shape) <= max_exact_literals
        or number_of_queries_for_query_sampling(c, shape) <= sample_size
    ]
    other_shapes = [shape for shape in shapes if shape not in exact_shapes]
    total = sum(number_of_queries_for_query_sampling(c, shape) for shape in exact_shapes)
    total += sample_size * len(other_shapes)
    count_query = _conjunction_map_query_counter(progress, total)
    precisions = _conjunction_map_of_all_queries(literal_scores, exact_shapes, count_query)
    sets = {
        wanted: query_sampling_label_sets(literal_scores.is_true[1], wanted)
        for wanted in {wanted for wanted, _ in other_shapes}
    }
    for shape in other_shapes:
        generator = np.random.default_rng((seed, *shape))
        precisions[shape] = _conjunction_map_of_sampled_queries(
            literal_scores, sets[shape[0]], shape, sample_size, generator, count_query
        )
    if progress:
        progress(total, total)
    return query_average_precision_of_shapes([precisions[shape] for shape in shapes], seed)


def _conjunction_map_of_all_queries(
    literal_scores: LiteralScores,
    shapes: Sequence[QueryShape],
    count_query: Callable[[], None],
) -> dict[QueryShape, ShapePrecision]:
    """Return the mAP of each shape, from an enumeration of all fulfilled queries."""
    precisions: dict[QueryShape, list[float]] = {shape: [] for shape in shapes}
    for query, scores, is_relevant in walk_fulfilled_queries_without_sampling(
        literal_scores, precisions
    ):
        precisions[query_sampling_shape(query)].append(
            average_precision_of_literal_scores(scores, is_relevant)
        )
        count_query()
    return {
        shape: _exact_conjunction_map(literal_scores, shape, values)
        for shape, values in precisions.items()
    }


def _conjunction_map_of_sampled_queries(
    literal_scores: LiteralScores,
    sets: LabelSets,
    shape: QueryShape,
    sample_size: int,
    generator: np.random.Generator,
    count_query: Callable[[], None],
) -> ShapePrecision:
    """Return the mAP of one shape, from all its fulfilled queries if few are possible, or a sample.

    Args:
        literal_scores: Log probabilities and truth values of all literals.
        sets: Sets of wanted labels that are all positive in at least one image.
        shape: Number of wanted and of unwanted labels.
        sample_size: Number of fulfilled queries in a sample.
        generator: Random generator.
        count_query: Function that is called after each evaluated query.
    """
    candidates = len(sets) * comb(literal_scores.n_labels - shape[0], shape[1])
    if candidates <= sample_size:
        queries, draws = fulfilled_queries_without_sampling(literal_scores, sets, shape[1]), 0
    else:
        queries, draws = sample_queries(
            literal_scores, sets, shape[1], sample_size=sample_size, generator=generator
        )
    precisions = []
    for query in queries:
        scores = literal_scores.query_scores(query)
        is_relevant = literal_scores.relevant_images(query)
        precisions.append(average_precision_of_literal_scores(scores, is_relevant))
        count_query()
    if not draws:
        return _exact_conjunction_map(literal_scores, shape, precisions)
    n = len(precisions)
    return ShapePrecision(
        *shape,
        queries=number_of_queries_for_query_sampling(literal_scores.n_labels, shape),
        fulfilled=candidates * n / draws,
        evaluated=n,
        mean=_conjunction_map_mean_or_nan(precisions),
        standard_error=float(np.std(precisions, ddof=1) / n**0.5) if n > 1 else np.nan,
        draws=draws,
        sampled_queries=tuple(queries),
    )


def _exact_conjunction_map(
    literal_scores: LiteralScores, shape: QueryShape, precisions: Sequence[float]
) -> ShapePrecision:
    n = len(precisions)
    return ShapePrecision(
        *shape,
        queries=number_of_queries_for_query_sampling(literal_scores.n_labels, shape),
        fulfilled=n,
        evaluated=n,
        mean=_conjunction_map_mean_or_nan(precisions),
        standard_error=0.0,
    )


def _conjunction_map_query_counter(progress: Progress | None, total: int) -> Callable[[], None]:
    """Return a function that counts evaluated queries and reports progress at intervals."""
    numbers = count(1)

    def count_query() -> None:
        n_done = next(numbers)
        if progress and n_done % PROGRESS_INTERVAL == 0:
            progress(n_done, total)

    return count_query


def _check_conjunction_map_settings(**settings: tuple[int, int]) -> None:
    """Raise ConfigError unless each setting is a whole number of at least the given minimum."""
    for name, (value, minimum) in settings.items():
        if value != int(value) or value < minimum:
            raise ConfigError(
                f"{name} must be a whole number of at least {minimum}; got {value}. Round or "
                "increase this number."
            )


def _conjunction_map_mean_or_nan(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
