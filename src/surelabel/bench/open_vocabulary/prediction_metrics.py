"""Compute ranking and calibration metrics of predictions, also on resamples of test images."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.bench.open_vocabulary.fitted_rows import FittedPredictions
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.resampling import (
    BenchResampling,
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)
from surelabel.evaluation import UnseenClassResults, evaluate_unseen_classes
from surelabel.evaluation.ranking_results import RANKING_CUTOFFS, RankingResults
from surelabel.metrics.arrays.nan_division import divide_or_nan

GROUPS = ("seen", "unseen")
PROTOCOLS = ("zsl", "gzsl")
RANKING_METRICS = tuple(
    f"{protocol}_{name}" for protocol in PROTOCOLS for name in ("f1_at_3", "f1_at_5", "map")
)
CALIBRATION_METRICS = tuple(
    f"{group}_{metric}" for group in GROUPS for metric in ("ece", "brier_skill")
)
COMPARED_METRICS = RANKING_METRICS + CALIBRATION_METRICS


def evaluate_prediction_metrics(
    images: OpenVocabularySplits, predictions: FittedPredictions
) -> UnseenClassResults:
    """Compute ranking and calibration metrics of the seen and unseen classes.

    Args:
        images: Images whose test targets are used.
        predictions: Test predictions.
    """
    targets, known, seen = targets_of_prediction_metrics(images)
    probabilities = expit(predictions.logits)
    return evaluate_unseen_classes(predictions.scores, targets, seen, known, probabilities)


def prediction_metric_values(results: UnseenClassResults) -> dict[str, float]:
    """Return all metrics by name.

    Names of ranking metrics start with ``zsl_`` (zero-shot) or ``gzsl_`` (generalized zero-shot).
    Names of calibration metrics start with the group of classes, such as ``seen_`` or ``unseen_``.

    Args:
        results: Metrics of seen and unseen classes.
    """
    ranking = _ranking_prediction_metrics("zsl", results.zsl) | _ranking_prediction_metrics(
        "gzsl", results.gzsl
    )
    calibration = {
        f"{group}_{metric}": value
        for metric, by_group in results.metrics_by_group.items()
        for group, value in by_group.items()
    }
    floors = {f"{group}_ece_noise_floor": results.noise_floor["ece"][group] for group in GROUPS}
    return {name: float(value) for name, value in (ranking | calibration | floors).items()}


def prediction_metrics_of_perfect_ranking(results: UnseenClassResults) -> dict[str, float]:
    """Return the micro-F1 at k of a perfect ranking, which depends only on the targets."""
    return {
        f"{protocol}_f1_at_{k}": ranking.perfect_ranking.micro[k].f1
        for protocol, ranking in (("zsl", results.zsl), ("gzsl", results.gzsl))
        for k in RANKING_CUTOFFS
    }


def bootstrap_prediction_metrics(
    images: OpenVocabularySplits, predictions: FittedPredictions, *, resamples: int
) -> dict[str, Array]:
    """Return the ``COMPARED_METRICS`` on the test images and on each resample.

    Args:
        images: Images whose test targets are used.
        predictions: Test predictions.
        resamples: Number of resamples.

    Returns:
        Values of each metric, ``(1 + resamples,)``. The first value is the metric of the
        original test images.
    """
    targets, known, seen = targets_of_prediction_metrics(images)
    unseen = np.setdiff1d(np.arange(targets.shape[1]), seen)
    is_positive = targets > 0
    weights = bench_resampling_weights(len(targets), resamples=resamples)
    has_unseen = is_positive[:, unseen].any(axis=1)  # zero-shot uses images with an unseen class
    values = _resampled_prediction_metrics(
        "zsl", predictions.scores[:, unseen], is_positive[:, unseen], weights * has_unseen
    )
    values |= _resampled_prediction_metrics("gzsl", predictions.scores, is_positive, weights)
    for group, columns in (("seen", seen), ("unseen", unseen)):
        bootstrap = BenchResampling(targets[:, columns], known[:, columns], resamples=resamples)
        metrics = bootstrap.metrics(predictions.logits[:, columns])
        values |= {f"{group}_{name}": metrics[name] for name in ("ece", "brier_skill")}
    return {name: values[name] for name in COMPARED_METRICS}


def targets_of_prediction_metrics(
    images: OpenVocabularySplits,
) -> tuple[Array, Flags, npt.NDArray[np.intp]]:
    """Return test targets, flags of known targets, and columns of the seen classes.

    The columns of targets and flags are in the order of the vocabulary, seen classes first.
    """
    vocabulary, test = images.vocabulary, images.test
    columns = [list(test.names).index(name) for name in vocabulary.names]
    return test.targets[:, columns], test.known[:, columns], np.arange(len(vocabulary.seen))


def _ranking_prediction_metrics(protocol: str, results: RankingResults) -> dict[str, float]:
    achieved = results.achieved
    values = {f"{protocol}_f1_at_{k}": achieved.micro[k].f1 for k in RANKING_CUTOFFS}
    values[f"{protocol}_map"] = achieved.mean_average_precision
    values[f"{protocol}_map_zero_filled"] = achieved.mean_average_precision_zero_filled
    return values


def _resampled_prediction_metrics(
    protocol: str, scores: Array, is_positive: Flags, weights: Array
) -> dict[str, Array]:
    """Return F1 at k and mean average precision on each resample, for scores without ties."""
    order = np.argsort(-scores, axis=1, kind="stable")
    n_positives = weights @ is_positive.sum(axis=1)
    values = {}
    for k in RANKING_CUTOFFS:
        true_positives = np.take_along_axis(is_positive, order[:, :k], axis=1).sum(axis=1)
        n_predicted = weights.sum(axis=1) * min(k, scores.shape[1])
        values[f"{protocol}_f1_at_{k}"] = divide_or_nan(
            2 * (weights @ true_positives), n_predicted + n_positives
        )
    values[f"{protocol}_map"] = bench_resampling_mean_average_precision(
        scores, is_positive, weights
    )
    return values
