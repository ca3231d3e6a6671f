"""Compute bootstrap confidence intervals of the main metrics by resampling images."""

import numpy as np

from surelabel.evaluation.evaluation_result import HEADLINE_METRICS, Evaluation
from surelabel.evaluation.ranking_values import prediction_ranking_values
from surelabel.mapped_arrays import to_mapped_array
from surelabel.metrics import PROBABILITY, RANKING, ConfidenceInterval, bootstrap_interval

MAX_RESAMPLES, MIN_RESAMPLES = 200, 50
MAX_RESAMPLED_DECISIONS = 20_000_000  # in all resamples; larger datasets have fewer resamples


def evaluation_confidence_intervals(
    evaluation: Evaluation, *, seed: int = 0
) -> dict[str, ConfidenceInterval]:
    """Return 95 % bootstrap confidence intervals for mAP, Brier skill, log loss and ECE.

    The images are resampled 200 times with replacement. If there are more than 100,000 pairs of
    image and label, the number of resamples decreases, but is never below 50. The computation takes
    a few seconds, or about half a minute for 40,000 images with 80 labels.

    Args:
        evaluation: Evaluation of predictions on labelled images.
        seed: Seed of the resamples.

    Returns:
        Confidence interval by metric. If the predictions are uncalibrated, only mAP has an
        interval.
    """
    targets, known = evaluation.targets, evaluation.known
    order = prediction_ranking_values(evaluation.predictions)
    resamples = int(
        np.clip(MAX_RESAMPLED_DECISIONS // max(targets.size, 1), MIN_RESAMPLES, MAX_RESAMPLES)
    )
    intervals = {}
    for name in HEADLINE_METRICS:
        if name not in evaluation.summary:
            continue
        metric = (RANKING | PROBABILITY)[name]
        values = order if name in RANKING else to_mapped_array(evaluation.predictions.probabilities)
        intervals[name] = bootstrap_interval(
            metric, values, targets, known, resamples=resamples, seed=seed
        )
    return intervals
