"""Compare two sets of predictions of the same annotated images by a paired bootstrap."""

from collections.abc import Sequence

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.evaluation.comparison_result import Comparison, LabelDifferences, MetricDifference
from surelabel.evaluation.ranking_values import prediction_ranking_values
from surelabel.evaluation.shared_predictions import SharedPredictions, select_shared_predictions
from surelabel.metrics import (
    PROBABILITY,
    PROBABILITY_PER_CLASS,
    RANKING,
    RANKING_PER_CLASS,
    ConfidenceInterval,
)
from surelabel.metrics.arrays.nan_division import mean_ignoring_nan
from surelabel.metrics.resampling.bootstrap import (
    bootstrap_row_indices,
    shifted_bootstrap_interval,
)
from surelabel.metrics.resampling.p_values import adjusted_p_values, bootstrap_p_values
from surelabel.progress import Progress
from surelabel.records import LabelledImages, Predictions

MAX_RESAMPLES, MIN_RESAMPLES = 1000, 100
MAX_RESAMPLED_DECISIONS = 20_000_000  # in all resamples; larger datasets have fewer resamples
MIN_TARGETS = 5  # fewest positive and fewest negative targets of a label with a p-value
LABEL_METRICS = ("average_precision", "log_loss", "brier")


def compare_predictions(
    first: Predictions,
    second: Predictions,
    labelled: LabelledImages,
    *,
    titles: tuple[str, str] = ("A", "B"),
    first_names: Sequence[str] | None = None,
    second_names: Sequence[str] | None = None,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare the metrics of two sets of predictions of the same images, with paired intervals.

    Both sets of predictions are evaluated on the same resamples of the images, so that the interval
    of a difference is usually much narrower than two separate intervals suggest. If one set of
    predictions is uncalibrated, only ranking metrics are compared.

        p = 2 · Φ(-|difference| / s)

    where s is the standard deviation of the difference over the resamples, and Φ the standard
    normal distribution function. The p-values of a metric are adjusted for the number of labels by
    the method of Benjamini and Hochberg.

    Args:
        first: First predictions (A).
        second: Second predictions (B).
        labelled: Annotated images. Images without both predictions are left out.
        titles: Names of A and B.
        first_names: Labels of A with aliases, as in ``sofa|couch``. If None, the labels have no
            aliases.
        second_names: Labels of B with aliases.
        resamples: Number of resamples, >= 2. If None, there are 1,000 resamples. For more than
            20,000 pairs of image and label, there are fewer resamples, but at least 100.
        seed: Seed of the resamples.
        progress: Function called with the number of finished resamples and their total number.

    Raises:
        InputError: If A, B and the dataset share no image, no label or no known target, or if a
            shared target is neither 0 nor 1.
        ConfigError: If ``resamples`` is not a whole number >= 2.

    Source:
        Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics, 1979;
        Benjamini and Hochberg, Controlling the False Discovery Rate, Journal of the Royal
        Statistical Society B, 1995.

    Differs:
        The resampled differences are shifted as in ``metrics.paired_bootstrap_interval``. Labels
        with fewer than five positive or five negative targets have no p-value. The guarantee of
        Benjamini and Hochberg needs independent or positively dependent p-values.

    Example:
        >>> random = np.random.default_rng(0)
        >>> targets = random.integers(0, 2, (40, 2))
        >>> paths, names = [f"{row}.jpg" for row in range(40)], ["dog", "cat"]
        >>> good, weak = (
        ...     Predictions(paths, names, (s * targets + random.normal(size=(40, 2))).astype("f4"))
        ...     for s in (4, 0)
        ... )
        >>> labelled = LabelledImages(paths, names, targets)
        >>> comparison = compare_predictions(weak, good, labelled)
        >>> comparison.metrics["mean_average_precision"].difference.low > 0
        True
    """
    shared = select_shared_predictions(
        first, second, labelled, first_names=first_names, second_names=second_names
    )
    is_calibrated = first.calibration is not None and second.calibration is not None
    pooled = [*RANKING, *(PROBABILITY if is_calibrated else {})]
    per_label = [name for name in LABEL_METRICS if is_calibrated or name in RANKING_PER_CLASS]
    values, resampled = _values_and_differences(
        shared, pooled, per_label, resamples, seed, progress
    )
    intervals = [
        shifted_bootstrap_interval(float(difference), column)
        for difference, column in zip(values[1] - values[0], resampled.T, strict=True)
    ]
    n_labels, n_pooled = shared.targets.shape[1], len(pooled)
    metrics = {
        name: MetricDifference(float(values[0, i]), float(values[1, i]), intervals[i])
        for i, name in enumerate(pooled)
    }
    has_targets = _has_enough_targets(shared.targets, shared.known)
    labels = {}
    for i, name in enumerate(per_label):
        of_metric = slice(n_pooled + i * n_labels, n_pooled + (i + 1) * n_labels)
        labels[name] = _label_differences(
            values[:, of_metric], resampled[:, of_metric], intervals[of_metric], has_targets
        )
    return Comparison(
        first=titles[0],
        second=titles[1],
        first_calibration=first.calibration,
        second_calibration=second.calibration,
        names=list(shared.first.names),
        n_images=len(shared.first),
        n_positives=(shared.targets * shared.known).sum(axis=0),
        metrics=metrics,
        labels=labels,
        images_without_first=shared.images_without_first,
        images_without_second=shared.images_without_second,
        unannotated_images=shared.unannotated_images,
        labels_of_first_only=shared.labels_of_first_only,
        labels_of_second_only=shared.labels_of_second_only,
        unannotated_labels=shared.unannotated_labels,
        resamples=len(resampled),
        row_noun=first.row_noun,
    )


def _values_and_differences(
    shared: SharedPredictions,
    pooled: Sequence[str],
    per_label: Sequence[str],
    resamples: int | None,
    seed: int,
    progress: Progress | None,
) -> tuple[Array, Array]:
    """Return the values of A and B, ``(2, v)``, and B − A on each resample, ``(r, v)``.

    The v values are the pooled metrics, followed by the metrics of each label.
    """
    targets, known = shared.targets, shared.known
    sides = [
        (
            prediction_ranking_values(predictions),
            predictions.probabilities if "brier" in pooled else None,
        )
        for predictions in (shared.first, shared.second)
    ]

    def metric_values(rows: ColumnIndices | slice) -> list[Array]:
        return [
            _metric_values(
                ranking[rows],
                None if probabilities is None else probabilities[rows],
                targets[rows],
                known[rows],
                pooled,
                per_label,
            )
            for ranking, probabilities in sides
        ]

    if resamples is None:
        limit = MAX_RESAMPLED_DECISIONS // targets.size
        resamples = int(np.clip(limit, MIN_RESAMPLES, MAX_RESAMPLES))
    values = np.array(metric_values(slice(None)))
    differences = []
    for done, rows in enumerate(bootstrap_row_indices(len(targets), resamples, seed), start=1):
        of_first, of_second = metric_values(rows)
        differences.append(of_second - of_first)
        if progress:
            progress(done, resamples)
    return values, np.array(differences).reshape(-1, values.shape[1])


def _metric_values(
    ranking: Array,
    probabilities: Array | None,
    targets: Array,
    known: Flags,
    pooled: Sequence[str],
    per_label: Sequence[str],
) -> Array:
    """Return the pooled metrics, followed by the metrics of each label."""
    arrays = {
        name: RANKING_PER_CLASS[name](ranking, targets, known)
        if name in RANKING_PER_CLASS
        else PROBABILITY_PER_CLASS[name](probabilities, targets, known)
        for name in per_label
    }
    numbers = []
    for name in pooled:
        if name == "mean_average_precision":  # mean of the average precision of each label
            numbers.append(mean_ignoring_nan(arrays["average_precision"]))
        elif name in RANKING:
            numbers.append(RANKING[name](ranking, targets, known))
        else:
            numbers.append(PROBABILITY[name](probabilities, targets, known))
    return np.concatenate([numbers, *arrays.values()])


def _label_differences(
    values: Array,
    resampled: Array,
    intervals: Sequence[ConfidenceInterval],
    has_targets: Flags,
) -> LabelDifferences:
    difference = values[1] - values[0]
    return LabelDifferences(
        values[0],
        values[1],
        difference,
        np.array([interval.low for interval in intervals]),
        np.array([interval.high for interval in intervals]),
        adjusted_p_values(np.where(has_targets, bootstrap_p_values(difference, resampled), np.nan)),
    )


def _has_enough_targets(targets: Array, known: Flags) -> Flags:
    """Return True for each label with five positive and five negative targets or more."""
    n_positives = (targets * known).sum(axis=0)
    flags: Flags = np.minimum(n_positives, known.sum(axis=0) - n_positives) >= MIN_TARGETS
    return flags
