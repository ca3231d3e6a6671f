"""Compute ranking metrics of candidate labels, and the metrics of a perfect ranking."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.metrics.arrays.nan_division import mean_ignoring_nan
from surelabel.metrics.average_precision import average_precision_per_class
from surelabel.metrics.f1_at_k import f1_at_k
from surelabel.metrics.precision_at_k import precision_at_k, precision_at_k_per_class
from surelabel.metrics.recall_at_k import recall_at_k, recall_at_k_per_class

Indices = npt.NDArray[np.intp]
RANKING_CUTOFFS = (3, 5)  # numbers of top-ranked labels per image


@dataclass(frozen=True)
class TopKMetrics:
    """Precision, recall and F1 of the k top-ranked labels, in [0, 1], or NaN if undefined.

    Attributes:
        precision: Fraction of the top-ranked labels that are positive.
        recall: Fraction of the positive labels that are among the top-ranked labels.
        f1: Harmonic mean of precision and recall.
    """

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class RankingMetrics:
    """Metrics of one ranking of candidate labels.

    Attributes:
        micro: Metrics over all images and labels, by k, the number of top-ranked labels per image.
        macro: Mean precision and mean recall over classes with a defined value (CP and CR), and the
            harmonic mean of both means (CF1), by k. The precision of a class that is never among
            the top-ranked labels is undefined, and so is the recall of a class without a positive
            image.
        macro_zero_filled: CP, CR and CF1 over all classes, by k. Undefined values are set to 0.
        mean_average_precision: Mean of the average precision over classes with a positive image.
        mean_average_precision_zero_filled: Mean of the average precision over all classes. For a
            class without a positive image, the average precision is set to 0.
    """

    micro: Mapping[int, TopKMetrics]
    macro: Mapping[int, TopKMetrics]
    macro_zero_filled: Mapping[int, TopKMetrics]
    mean_average_precision: float
    mean_average_precision_zero_filled: float


@dataclass(frozen=True)
class RankingResults:
    """Ranking metrics of candidate labels on a subset of the images.

    Attributes:
        candidates: Number of candidate labels, which are ranked in every image.
        images: Number of images.
        labels_per_image: Mean number of positive candidates per image. If there is no image, the
            value is NaN.
        labels_without_positives: Number of candidates without a positive image.
        achieved: Metrics of the ranking by score.
        perfect_ranking: Metrics of a perfect ranking, in which every positive label has the score 1
            and every other label the score 0. These metrics are an upper bound of ``micro`` and of
            the mean average precision. ``macro`` and ``macro_zero_filled`` can be higher in another
            ranking, because class means also depend on the order of labels with equal targets.
    """

    candidates: int
    images: int
    labels_per_image: float
    labels_without_positives: int
    achieved: RankingMetrics
    perfect_ranking: RankingMetrics


def compute_ranking_results(
    scores: Array, positive: Flags, known: Flags, *, rows: Indices, columns: Indices
) -> RankingResults:
    """Rank the candidate labels of selected images by score and compute the ranking metrics.

    Args:
        scores: Finite scores of n images and c labels, ``(n, c)``, higher for more likely labels.
        positive: True where the label is positive, ``(n, c)``. False if the target is unknown.
        known: True where the target is known, ``(n, c)``.
        rows: Indices of the images.
        columns: Indices of the candidate labels.

    Source:
        Overall precision, recall and F1 at k, and their class means, as in Gong et al., Deep
        Convolutional Ranking for Multilabel Image Annotation, arXiv:1312.4894; for unseen labels:
        Huynh and Elhamifar, A Shared Multi-Attention Framework for Multi-Label Zero-Shot Learning,
        CVPR 2020. The perfect ranking is ours.
    """
    subset = np.ix_(rows, columns)
    scores, positive, known = scores[subset], positive[subset], known[subset]
    n_images = len(scores)
    return RankingResults(
        candidates=len(columns),
        images=n_images,
        labels_per_image=float(positive.sum() / n_images) if n_images else float("nan"),
        labels_without_positives=int((~positive.any(axis=0)).sum()),
        achieved=_ranking_results_metrics(scores, positive, known),
        perfect_ranking=_ranking_results_metrics(positive.astype(np.float64), positive, known),
    )


def _ranking_results_metrics(scores: Array, positive: Flags, known: Flags) -> RankingMetrics:
    """Return all ranking metrics of one set of scores."""
    data = scores, positive, known
    average_precision = average_precision_per_class(*data)
    precision = {k: precision_at_k_per_class(*data, k=k) for k in RANKING_CUTOFFS}
    recall = {k: recall_at_k_per_class(*data, k=k) for k in RANKING_CUTOFFS}
    return RankingMetrics(
        micro={k: _micro_ranking_results(*data, k=k) for k in RANKING_CUTOFFS},
        macro={k: _macro_ranking_results(precision[k], recall[k]) for k in RANKING_CUTOFFS},
        macro_zero_filled={
            k: _macro_ranking_results(np.nan_to_num(precision[k]), np.nan_to_num(recall[k]))
            for k in RANKING_CUTOFFS
        },
        mean_average_precision=mean_ignoring_nan(average_precision),
        mean_average_precision_zero_filled=float(np.nan_to_num(average_precision).mean()),
    )


def _micro_ranking_results(scores: Array, positive: Flags, known: Flags, *, k: int) -> TopKMetrics:
    """Return the metrics of the k top-ranked labels over all images and labels."""
    metrics = (precision_at_k, recall_at_k, f1_at_k)
    return TopKMetrics(*(metric(scores, positive, known, k=k) for metric in metrics))


def _macro_ranking_results(precision_per_class: Array, recall_per_class: Array) -> TopKMetrics:
    """Return the means of the defined values of all classes, and the harmonic mean of both means.

    Args:
        precision_per_class: Precision of each class, ``(c,)``, NaN if undefined.
        recall_per_class: Recall of each class, ``(c,)``, NaN if undefined.
    """
    precision = mean_ignoring_nan(precision_per_class)
    recall = mean_ignoring_nan(recall_per_class)
    total = precision + recall
    return TopKMetrics(precision, recall, 2 * precision * recall / total if total else total)
