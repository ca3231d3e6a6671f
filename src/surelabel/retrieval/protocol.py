"""How well conjunctions find pictures: mean average precision over all queries.

A query names some labels as wanted, at least one, and some as unwanted. A picture is relevant when
all of it holds. All pictures are ranked; queries that no picture fulfils are counted and left out.
Short queries are all judged. Of long ones, too many for that, some of each shape are drawn.
"""

from collections.abc import Callable, Sequence
from itertools import count
from math import comb

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError
from surelabel.retrieval.judged import Judged, judged, precision_of
from surelabel.retrieval.precision import Cell, QueryPrecision, combined
from surelabel.retrieval.queries import (
    Sets,
    Shape,
    all_around,
    drawn_around,
    every_query,
    number_of_shape,
    sets_that_occur,
    shape_of,
    shapes,
)

Progress = Callable[[int, int], None]

OFTEN = 1000  # queries between two reports of progress


def number_of_queries(c: int, length: int) -> int:
    """Queries of exactly ``length`` of ``c`` labels, at least one of them wanted.

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
    most_literals: int = 5,
    exact_literals: int = 3,
    sample: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> QueryPrecision:
    """Rank all pictures for every conjunction and average the precision.

        s = Σ_{j wanted} log p_j + Σ_{k unwanted} log(1 - p_k)
        mAP = mean over queries of Σ_i (R_i - R_{i-1}) · P_i     over distinct s, highest first

    Of a long query's shape, a labels wanted and b unwanted, the mean over ``sample`` fulfilled
    queries stands for all of them and weighs C(c, a) · C(c - a, b) · P(fulfilled).

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out. For a query
            only pictures count of which all its labels are known.
        most_literals: Queries have 1 to this many labels, >= 1.
        exact_literals: Up to this many labels all queries are judged, >= 0.
        sample: Queries drawn of each shape of longer ones, >= 2; all where there are no more.
        seed: Of the draws.
        progress: Called now and then with the queries judged and an upper bound of all to judge.

    Returns:
        Means, standard errors and counts: of all queries, each length and each shape.

    Raises:
        InputError: the shapes differ, a log-odds is not finite, or a known target is not 0 or 1.
        ConfigError: a setting is not a whole number or too small.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        section 5.3 and eq. 23.

    Differs:
        The paper does not say what becomes of queries without a relevant picture; we leave them
        out and count them. It judges all queries, 770 million for 80 labels; we draw among long
        ones. Scores come from log-odds, where products of probabilities saturate, in float32.

    Example:
        >>> precision = mean_average_precision_of_queries([[2, -1], [-1, 1], [0, -3]], np.eye(3, 2))
        >>> precision.mean, precision.queries, precision.skipped
        (1.0, {1: 2, 2: 2}, {1: 0, 2: 1})
    """
    _check(most_literals=(most_literals, 1), exact_literals=(exact_literals, 0), sample=(sample, 2))
    pictures = judged(logits, targets, known)
    c = pictures.labels
    everything = [s for n in range(1, min(most_literals, c) + 1) for s in shapes(n)]
    whole = [s for s in everything if sum(s) <= exact_literals or number_of_shape(c, s) <= sample]
    rest = [s for s in everything if s not in whole]
    total = sum(number_of_shape(c, s) for s in whole) + sample * len(rest)
    judged_one = _counter(progress, total)
    cells = _all_judged(pictures, whole, judged_one)
    sets = {a: sets_that_occur(pictures.holds[1], a) for a in {a for a, _ in rest}}
    for a, b in rest:
        generator = np.random.default_rng((seed, a, b))
        cells[a, b] = _some_judged(pictures, sets[a], (a, b), sample, generator, judged_one)
    if progress:
        progress(total, total)
    return combined([cells[s] for s in everything], seed)


def _all_judged(
    pictures: Judged, whole: Sequence[Shape], judged_one: Callable[[], None]
) -> dict[Shape, Cell]:
    """One walk over all queries of some shapes."""
    precisions: dict[Shape, list[float]] = {shape: [] for shape in whole}
    for query, scores, relevant in every_query(pictures, precisions):
        precisions[shape_of(query)].append(precision_of(scores, relevant))
        judged_one()
    return {shape: _whole_cell(pictures, shape, values) for shape, values in precisions.items()}


def _some_judged(
    pictures: Judged,
    sets: Sets,
    shape: Shape,
    sample: int,
    generator: np.random.Generator,
    judged_one: Callable[[], None],
) -> Cell:
    """Queries of one shape around sets of wanted labels that occur: all, or a sample."""
    around = len(sets) * comb(pictures.labels - shape[0], shape[1])
    if around <= sample:
        queries, drawn = all_around(pictures, sets, shape[1]), 0
    else:
        queries, drawn = drawn_around(pictures, sets, shape[1], sample=sample, generator=generator)
    values = []
    for query in queries:
        values.append(precision_of(pictures.scores(query), pictures.relevant(query)))
        judged_one()
    if not drawn:
        return _whole_cell(pictures, shape, values)
    return Cell(
        *shape,
        queries=number_of_shape(pictures.labels, shape),
        fulfilled=around * len(values) / drawn,
        judged=len(values),
        mean=_mean(values),
        error=float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else np.nan,
        drawn=drawn,
        sample=tuple(queries),
    )


def _whole_cell(pictures: Judged, shape: Shape, values: Sequence[float]) -> Cell:
    number, n = number_of_shape(pictures.labels, shape), len(values)
    return Cell(*shape, queries=number, fulfilled=n, judged=n, mean=_mean(values), error=0.0)


def _counter(progress: Progress | None, total: int) -> Callable[[], None]:
    """What to call after each query."""
    numbers = count(1)

    def one_more() -> None:
        done = next(numbers)
        if progress and done % OFTEN == 0:
            progress(done, total)

    return one_more


def _check(**settings: tuple[int, int]) -> None:
    for name, (value, least) in settings.items():
        if value != int(value) or value < least:
            raise ConfigError(f"{name} must be a whole number of at least {least}. Got {value}.")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
