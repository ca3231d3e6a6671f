"""Compute bootstrap intervals of retrieval metrics by resampling images with their captions."""

from collections.abc import Callable, Mapping

import numpy as np

from surelabel.arrays import Array, ColumnIndices
from surelabel.decisions import error_auroc
from surelabel.evaluation.pair_direction import UNCERTAINTY, PairDirection
from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.resampling.bootstrap import (
    bootstrap_row_indices,
    shifted_bootstrap_interval,
)

MAX_RESAMPLES, MIN_RESAMPLES = 200, 50
MAX_RESAMPLED_QUERIES = 2_000_000  # queries in all resamples; larger datasets have fewer resamples

QueryStatistic = Callable[[Array], float]  # function of the weights of the queries


def pair_direction_intervals(
    direction: PairDirection, n_images: int, seed: int
) -> dict[str, ConfidenceInterval]:
    """Return the bootstrap intervals of the metrics of one direction.

    Args:
        direction: Metrics of one direction.
        n_images: Number of images of the evaluation.
        seed: Seed of the resamples.

    Returns:
        Interval of each mean over queries, and of ``auroc_of_QUANTITY`` for each quantity that may
        predict errors. ``auroc_gain_over_QUANTITY`` has the interval of the AUROC of the
        uncertainty minus the AUROC of another quantity on the same resamples. Median ranks have no
        interval.
    """
    statistics = _mean_statistics(direction.values)
    quantities = list(direction.error_predictions)
    statistics |= {f"auroc_of_{name}": _auroc_statistic(direction, name) for name in quantities}
    if UNCERTAINTY in quantities:
        statistics |= {
            f"auroc_gain_over_{name}": _difference_statistic(
                _auroc_statistic(direction, UNCERTAINTY), _auroc_statistic(direction, name)
            )
            for name in quantities
            if name != UNCERTAINTY
        }
    gains = {name: value for name, value in statistics.items() if "_gain_" in name}
    fractions = {name: value for name, value in statistics.items() if name not in gains}
    rows = direction.image_of_query
    return image_bootstrap_intervals(
        fractions, rows, n_images, seed=seed, within=(0.0, 1.0)
    ) | image_bootstrap_intervals(gains, rows, n_images, seed=seed)


def pair_direction_differences(
    first: PairDirection, second: PairDirection, n_images: int, seed: int
) -> dict[str, ConfidenceInterval]:
    """Return the differences between two models with paired intervals, first minus second.

    Args:
        first: Metrics of the first model.
        second: Metrics of the second model for the same queries.
        n_images: Number of images of both evaluations.
        seed: Seed of the resamples, which are the same for both models.
    """
    statistics = _mean_statistics(
        {name: first.values[name] - second.values[name] for name in first.values}
    )
    if UNCERTAINTY in first.error_predictions and UNCERTAINTY in second.error_predictions:
        statistics[f"auroc_of_{UNCERTAINTY}"] = _difference_statistic(
            _auroc_statistic(first, UNCERTAINTY), _auroc_statistic(second, UNCERTAINTY)
        )
    return image_bootstrap_intervals(statistics, first.image_of_query, n_images, seed=seed)


def image_bootstrap_intervals(
    statistics: Mapping[str, QueryStatistic],
    image_of_query: ColumnIndices,
    n_images: int,
    *,
    seed: int = 0,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> dict[str, ConfidenceInterval]:
    """Compute the bootstrap interval of each statistic by resampling images.

    The captions of an image are dependent, so they are resampled together with their image. Only
    the queries are resampled, not the ranked images and captions. There are 200 resamples. For more
    than 10,000 queries, there are fewer resamples, but at least 50.

    Args:
        statistics: Functions of the weights of the queries, ``(q,)``. A weight is the number of
            times that a query occurs in a resample.
        image_of_query: Row of the image of each query, ``(q,)``.
        n_images: Number of images.
        seed: Seed of the resamples. Equal seeds resample the same images.
        within: Lowest and highest possible value of the statistics.

    Returns:
        Value with unit weights and its 95 % interval, by statistic. If there are fewer than two
        images, the ends of the interval are NaN.
    """
    limit = MAX_RESAMPLED_QUERIES // max(len(image_of_query), 1)
    resamples = int(np.clip(limit, MIN_RESAMPLES, MAX_RESAMPLES))
    resampled: dict[str, list[float]] = {name: [] for name in statistics}
    for rows in bootstrap_row_indices(n_images, resamples, seed):
        weights = np.bincount(rows, minlength=n_images)[image_of_query].astype(np.float64)
        for name, statistic in statistics.items():
            resampled[name].append(statistic(weights))
    ones = np.ones(len(image_of_query))
    return {
        name: shifted_bootstrap_interval(statistic(ones), np.array(resampled[name]), within=within)
        for name, statistic in statistics.items()
    }


def _mean_statistics(values: Mapping[str, Array]) -> dict[str, QueryStatistic]:
    """Return a function for each metric except median ranks: the weighted mean over queries."""
    return {
        name: _mean_statistic(value)
        for name, value in values.items()
        if not name.endswith("median_rank")
    }


def _mean_statistic(values: Array) -> QueryStatistic:
    def mean(weights: Array) -> float:
        total = weights.sum()
        return float(weights @ values / total) if total else float("nan")

    return mean


def _auroc_statistic(direction: PairDirection, quantity: str) -> QueryStatistic:
    """Return a function that computes the AUROC of the errors at rank 1 by one quantity."""
    uncertainty = direction.error_predictions[quantity].uncertainty
    is_error = direction.values["recall_at_1"] == 0
    return lambda weights: error_auroc(uncertainty, is_error, weights)


def _difference_statistic(first: QueryStatistic, second: QueryStatistic) -> QueryStatistic:
    return lambda weights: first(weights) - second(weights)
