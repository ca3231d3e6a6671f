"""Evaluate zero-shot and generalized zero-shot recognition of seen and unseen labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.evaluation.ranking_results import RankingResults, compute_ranking_results
from surelabel.metrics.arrays.input_validation import validate_ranking_metric_inputs
from surelabel.metrics.brier_skill import brier_skill
from surelabel.metrics.ece import ece
from surelabel.metrics.ece_of_candidates import ece_of_candidates
from surelabel.metrics.log_loss import log_loss
from surelabel.metrics.mean_average_precision import mean_average_precision
from surelabel.metrics.resampling.noise_floor import noise_floor
from surelabel.metrics.subsets.class_groups import metric_per_class_group

Columns = npt.NDArray[np.intp]
CALIBRATION_METRICS: dict[str, Callable[..., float]] = {
    "brier_skill": brier_skill,
    "log_loss": log_loss,
    "ece": ece,
    "ece_of_candidates": ece_of_candidates,
}
WITH_NOISE_FLOOR = ("ece", "ece_of_candidates")


@dataclass(frozen=True)
class UnseenClassResults:
    """Ranking and calibration of seen and unseen labels.

    Attributes:
        zsl: Ranking of unseen labels only (zero-shot), in images with a positive unseen label.
        zsl_all_images: Ranking of unseen labels only, in all images with a known unseen label.
            Recall is equal to that of ``zsl``, but precision is usually lower. Some papers use all
            images and others do not, so only recall is comparable between papers.
        gzsl: Ranking of all labels (generalized zero-shot), in all images with a known target.
        metrics_by_group: Values for ``seen`` and for ``unseen`` labels in all images, by metric
            name. Probability metrics are included only if probabilities are given.
        noise_floor: Noise floors for ``seen`` and for ``unseen`` labels, by metric name. Without
            probabilities, the mapping is empty.
    """

    zsl: RankingResults
    zsl_all_images: RankingResults
    gzsl: RankingResults
    metrics_by_group: Mapping[str, Mapping[str, float]]
    noise_floor: Mapping[str, Mapping[str, float]]


def evaluate_unseen_classes(
    scores: npt.ArrayLike,
    targets: npt.ArrayLike,
    seen_columns: Sequence[int] | Columns,
    known: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
) -> UnseenClassResults:
    """Evaluate the seen and the unseen labels of a recognizer that was fitted on seen labels.

    Args:
        scores: Finite scores of n images and c labels, ``(n, c)``, higher for more likely labels.
        targets: Targets, ``(n, c)``: 1 is positive, 0 is negative, NaN is unknown.
        seen_columns: Column indices of the labels with targets in training. All other labels are
            unseen.
        known: True where the target is known, ``(n, c)``. Only labels with a known target are
            evaluated. If None, all targets except NaN are known.
        probabilities: Probabilities in [0, 1], ``(n, c)``. If None, probability metrics are not
            computed.

    Returns:
        Zero-shot and generalized zero-shot results, the results of a perfect ranking, and the
        calibration of seen and unseen labels. Undefined values are NaN.

    Raises:
        InputError: If the shapes differ, if a score is not finite, if a known target is neither 0
            nor 1, or if a probability is NaN or outside [0, 1]. If a column does not exist, or if
            there is no seen or no unseen label.

    Source:
        Precision, recall and F1 at 3 and 5 of zero-shot and generalized zero-shot labels: Huynh and
        Elhamifar, A Shared Multi-Attention Framework for Multi-Label Zero-Shot Learning, CVPR 2020,
        as in Recover and Match, CVPR 2025, arXiv:2503.15337, section 5.1. The calibration of unseen
        labels is ours.

    Differs:
        If several labels are tied at rank 3 or 5, each of them is counted as an equal fraction of a
        prediction. Mean average precision is computed twice. The first mean includes classes
        without positives as 0, as in the source, and the second mean excludes these classes. Class
        means of precision and recall at k are also computed twice. ``zsl`` leaves out images
        without a positive unseen label, and ``zsl_all_images`` includes these images.

    Example:
        >>> scores = [[0.9, 0.2, 0.8, 0.1, 0.3], [0.7, 0.6, 0.5, 0.4, 0.3]]
        >>> targets = [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0]]
        >>> results = evaluate_unseen_classes(scores, targets, [0, 1])
        >>> results.zsl.images, results.zsl.labels_without_positives
        (1, 2)
        >>> results.zsl.achieved.micro[3].precision
        0.3333333333333333
        >>> results.gzsl.achieved.micro[3]
        TopKMetrics(precision=0.5, recall=1.0, f1=0.6666666666666666)
        >>> results.gzsl.perfect_ranking.micro[3].f1
        0.6666666666666666
    """
    scores, positive, known = validate_ranking_metric_inputs(scores, targets, known)
    seen, unseen = _split_seen_and_unseen_classes(seen_columns, scores.shape[1])
    groups = {"seen": seen, "unseen": unseen}

    def group_values(metric: Callable[..., float], values: npt.ArrayLike) -> dict[str, float]:
        return metric_per_class_group(metric, values, positive, known, groups)

    metrics_by_group = {"mean_average_precision": group_values(mean_average_precision, scores)}
    floor = {}
    if probabilities is not None:
        metrics_by_group |= {
            name: group_values(metric, probabilities)
            for name, metric in CALIBRATION_METRICS.items()
        }
        floor = {
            name: group_values(_unseen_class_noise_floor(CALIBRATION_METRICS[name]), probabilities)
            for name in WITH_NOISE_FLOOR
        }
    data = scores, positive, known
    with_unseen, with_known_unseen = positive[:, unseen], known[:, unseen]
    all_columns = np.arange(scores.shape[1])
    return UnseenClassResults(
        zsl=compute_ranking_results(
            *data, rows=_unseen_class_evaluation_rows(with_unseen), columns=unseen
        ),
        zsl_all_images=compute_ranking_results(
            *data, rows=_unseen_class_evaluation_rows(with_known_unseen), columns=unseen
        ),
        gzsl=compute_ranking_results(
            *data, rows=_unseen_class_evaluation_rows(known), columns=all_columns
        ),
        metrics_by_group=metrics_by_group,
        noise_floor=floor,
    )


def _unseen_class_evaluation_rows(flags: Flags) -> Columns:
    """Return the indices of the images with at least one True flag."""
    return np.flatnonzero(flags.any(axis=1))


def _split_seen_and_unseen_classes(
    seen_columns: Sequence[int] | Columns, classes: int
) -> tuple[Columns, Columns]:
    """Return the columns of seen and of unseen labels, each in increasing order."""
    columns = np.asarray(seen_columns)
    is_index = columns.ndim == 1 and columns.dtype.kind in "iu" and columns.size > 0
    if not is_index or columns.min() < 0 or columns.max() >= classes:
        raise InputError(
            f"seen_columns must contain one or more column indices from 0 to {classes - 1}; got "
            f"{columns.tolist()}. If seen_columns is a mask, convert it with numpy.flatnonzero."
        )
    seen = np.unique(columns).astype(np.intp)
    unseen = np.setdiff1d(np.arange(classes), seen)
    if not unseen.size:
        raise InputError(
            f"At least one label must be unseen; got all {format_count(classes, 'column')} as "
            "seen. Use surelabel.evaluation.evaluate_predictions if all labels are seen."
        )
    return seen, unseen


def _unseen_class_noise_floor(metric: Callable[..., float]) -> Callable[..., float]:
    """Return a function that computes the noise floor from the arguments of the metric."""
    return lambda probabilities, _, known: noise_floor(metric, probabilities, known)
