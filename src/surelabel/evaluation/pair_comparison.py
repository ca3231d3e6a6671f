"""Compare two evaluations of the same images and captions, with paired intervals."""

import numpy as np

from surelabel.errors import InputError
from surelabel.evaluation.pair_direction import PairDirection
from surelabel.evaluation.pair_evaluation import PairEvaluation
from surelabel.evaluation.pair_intervals import pair_direction_differences
from surelabel.metrics import ConfidenceInterval


def compare_pair_evaluations(
    first: PairEvaluation, second: PairEvaluation, *, seed: int = 0
) -> dict[str, dict[str, ConfidenceInterval]]:
    """Return the differences between two evaluations of the same pairs, with paired intervals.

    Both evaluations are resampled with the same images, so the interval of a difference is usually
    much narrower than two separate intervals suggest.

    Args:
        first: Evaluation of the first model.
        second: Evaluation of the second model on the same images, captions and relevance.
        seed: Seed of the resamples.

    Returns:
        First minus second by direction and metric. ``auroc_of_uncertainty``, the AUROC of the
        errors at rank 1, is included if both evaluations have an uncertainty. Median ranks are left
        out.

    Raises:
        InputError: If the evaluations have different queries or metrics.
    """
    for name, direction in first.directions.items():
        _check_same_queries(direction, second.directions[name])
    return {
        name: pair_direction_differences(direction, second.directions[name], first.n_images, seed)
        for name, direction in first.directions.items()
    }


def _check_same_queries(first: PairDirection, second: PairDirection) -> None:
    is_same = (
        first.n_items == second.n_items
        and first.values.keys() == second.values.keys()
        and np.array_equal(first.queries, second.queries)
        and np.array_equal(first.image_of_query, second.image_of_query)
    )
    if not is_same:
        raise InputError(
            "Both evaluations must have the same images, captions and metrics; "
            f"got {len(first.queries)} queries with {len(first.values)} metrics and "
            f"{len(second.queries)} queries with {len(second.values)} metrics. Evaluate both "
            "models on the same pairs with the same relevance."
        )
