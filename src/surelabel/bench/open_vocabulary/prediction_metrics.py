"""Ranking and calibration metrics of test predictions, also on resamples of the test images."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.bench.open_vocabulary.fitted_rows import FittedPredictions
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.resampling import BootstrapMetrics, resample_weights
from surelabel.evaluation import UnseenClassResults, evaluate_unseen_classes
from surelabel.evaluation.ranking_results import RANKING_CUTOFFS, RankingResults
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.records import Array, Flags

GROUPS = ("seen", "unseen")
PROTOCOLS = ("zsl", "gzsl")
RANKING_METRICS = tuple(
    f"{protocol}_{name}" for protocol in PROTOCOLS for name in ("f1_at_3", "f1_at_5", "map")
)
CALIBRATION_METRICS = tuple(
    f"{group}_{metric}" for group in GROUPS for metric in ("ece", "brier_skill")
)
COMPARED_METRICS = RANKING_METRICS + CALIBRATION_METRICS


def evaluate_fitted_predictions(
    images: OpenVocabularySplits, predictions: FittedPredictions
) -> UnseenClassResults:
    """Compute ranking and calibration metrics of the seen and unseen classes.

    Args:
        images: Images whose test targets are used.
        predictions: Test predictions.
    """
    targets, known, seen = vocabulary_targets(images)
    probabilities = expit(predictions.logits)
    return evaluate_unseen_classes(predictions.scores, targets, seen, known, probabilities)


def metric_values(results: UnseenClassResults) -> dict[str, float]:
    """Return all metrics by name: ranking metrics with prefix ``zsl_`` or ``gzsl_``.

    Args:
        results: Metrics of seen and unseen classes.
    """
    ranking = _ranking_values("zsl", results.zsl) | _ranking_values("gzsl", results.gzsl)
    calibration = {
        f"{group}_{metric}": value
        for metric, by_group in results.metrics_by_group.items()
        for group, value in by_group.items()
    }
    floors = {f"{group}_ece_noise_floor": results.noise_floor["ece"][group] for group in GROUPS}
    return {name: float(value) for name, value in (ranking | calibration | floors).items()}


def perfect_ranking_f1(results: UnseenClassResults) -> dict[str, float]:
    """Return the F1 at k of a perfect ranking, which does not depend on the predictions."""
    return {
        f"{protocol}_f1_at_{k}": ranking.perfect_ranking.micro[k].f1
        for protocol, ranking in (("zsl", results.zsl), ("gzsl", results.gzsl))
        for k in RANKING_CUTOFFS
    }


def bootstrap_metric_values(
    images: OpenVocabularySplits, predictions: FittedPredictions, *, resamples: int
) -> dict[str, Array]:
    """Return ``COMPARED_METRICS`` of the test images and of each resample.

    Args:
        images: Images whose test targets are used.
        predictions: Test predictions.
        resamples: Number of resamples.

    Returns:
        Values by metric, the test images themselves first, ``(1 + resamples,)`` each.
    """
    targets, known, seen = vocabulary_targets(images)
    unseen = np.setdiff1d(np.arange(targets.shape[1]), seen)
    is_positive = targets > 0
    weights = resample_weights(len(targets), resamples=resamples)
    has_unseen = is_positive[:, unseen].any(axis=1)  # zero-shot uses images with an unseen class
    values = _resampled_ranking_metrics(
        "zsl", predictions.scores[:, unseen], is_positive[:, unseen], weights * has_unseen
    )
    values |= _resampled_ranking_metrics("gzsl", predictions.scores, is_positive, weights)
    for group, columns in (("seen", seen), ("unseen", unseen)):
        bootstrap = BootstrapMetrics(targets[:, columns], known[:, columns], resamples=resamples)
        metrics = bootstrap.metrics(predictions.logits[:, columns])
        values |= {f"{group}_{name}": metrics[name] for name in ("ece", "brier_skill")}
    return {name: values[name] for name in COMPARED_METRICS}


def vocabulary_targets(images: OpenVocabularySplits) -> tuple[Array, Flags, npt.NDArray[np.intp]]:
    """Return test targets and known flags, seen classes first, and the seen columns."""
    vocabulary, test = images.vocabulary, images.test
    columns = [list(test.names).index(name) for name in vocabulary.names]
    return test.targets[:, columns], test.known[:, columns], np.arange(len(vocabulary.seen))


def _ranking_values(protocol: str, results: RankingResults) -> dict[str, float]:
    achieved = results.achieved
    values = {f"{protocol}_f1_at_{k}": achieved.micro[k].f1 for k in RANKING_CUTOFFS}
    values[f"{protocol}_map"] = achieved.mean_average_precision
    values[f"{protocol}_map_zero_filled"] = achieved.mean_average_precision_zero_filled
    return values


def _resampled_ranking_metrics(
    protocol: str, scores: Array, is_positive: Flags, weights: Array
) -> dict[str, Array]:
    """Return F1 at k and mean average precision by resample, for scores without ties."""
    order = np.argsort(-scores, axis=1, kind="stable")
    n_positives = weights @ is_positive.sum(axis=1)
    values = {}
    for k in RANKING_CUTOFFS:
        true_positives = np.take_along_axis(is_positive, order[:, :k], axis=1).sum(axis=1)
        n_predicted = weights.sum(axis=1) * min(k, scores.shape[1])
        values[f"{protocol}_f1_at_{k}"] = divide_or_nan(
            2 * (weights @ true_positives), n_predicted + n_positives
        )
    columns = zip(scores.T, is_positive.T, strict=True)
    precisions = np.array([_resampled_average_precision(*column, weights) for column in columns])
    n_defined = (~np.isnan(precisions)).sum(axis=0)
    values[f"{protocol}_map"] = divide_or_nan(np.nansum(precisions, axis=0), n_defined)
    return values


def _resampled_average_precision(scores: Array, is_positive: Flags, weights: Array) -> Array:
    """Return the average precision of one label by resample; NaN without a positive image."""
    order = np.argsort(-scores, kind="stable")
    counts, is_positive = weights[:, order], is_positive[order]
    true_positives = (counts * is_positive).cumsum(axis=1)[:, is_positive]
    precision = divide_or_nan(true_positives, counts.cumsum(axis=1)[:, is_positive])
    precision = np.nan_to_num(precision)  # undefined before the first image with a positive weight
    positive_counts = counts[:, is_positive]
    weighted_sum = (positive_counts * precision).sum(axis=1)
    return np.asarray(divide_or_nan(weighted_sum, positive_counts.sum(axis=1)))
