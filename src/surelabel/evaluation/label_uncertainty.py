"""Measure how the error rate decreases if uncertain labels or images are left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.decisions import (
    RiskCoverageCurve,
    UncertaintyBins,
    bin_by_uncertainty,
    risk_coverage_of_errors,
)
from surelabel.decisions.error_prediction import RISK_COVERAGE
from surelabel.decisions.uncertainty_bins import UNCERTAINTY_BINS
from surelabel.evaluation.examples import Example, build_evaluation_examples
from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.resampling.bootstrap import (
    bootstrap_row_indices,
    shifted_bootstrap_interval,
)
from surelabel.records import Predictions

THRESHOLD = 0.5  # lowest probability of an accepted label
MAX_DOUBTFUL_EXAMPLES = 6
MIN_LABELS_PER_BIN = 10
MAX_RESAMPLES, MIN_RESAMPLES = 200, 50
MAX_RESAMPLED_DECISIONS = 5_000_000  # in all resamples; larger datasets have fewer resamples
STATISTICS: dict[str, Callable[[RiskCoverageCurve], float]] = {
    "area": lambda curve: curve.area,
    "risk_at_80": lambda curve: curve.risk_at(RISK_COVERAGE),
}


@dataclass(frozen=True)
class SelectiveDecisions:
    """Decisions that are kept or left out by their uncertainty.

    Attributes:
        uncertainty: Finite uncertainty of each decision, ``(m,)``.
        error: Error of each decision, in [0, 1], ``(m,)``.
        image_rows: Row of the image of each decision, in [0, n), ``(m,)``.
        n_images: Number of images, n.
    """

    uncertainty: Array
    error: Array
    image_rows: npt.NDArray[np.int64]
    n_images: int


@dataclass(frozen=True)
class SelectiveRisk:
    """Error rate of decisions if the most uncertain decisions are left out.

    Attributes:
        curve: Error rate for each fraction of kept decisions.
        intervals: 95 % bootstrap interval over images of ``area``, the area under the curve, and
            of ``risk_at_80``, the error rate if the most uncertain decisions, at most 20 %, are
            left out.
    """

    curve: RiskCoverageCurve
    intervals: Mapping[str, ConfidenceInterval]


@dataclass(frozen=True)
class LabelUncertainty:
    """Agreement of one kind of uncertainty with the errors of labels and images.

    Attributes:
        kind: Kind of uncertainty, such as ``bernoulli_variance``.
        accepted_labels: Error rate of the labels with a probability of 0.5 or more, which is the
            fraction of negative targets among them. If there is no such label, the value is None.
        images: Error rate of the images: the fraction of known labels whose decision at 0.5 is
            wrong.
        bins: Precision of accepted labels in ten bins of increasing uncertainty. If there are fewer
            than 100 accepted labels, the value is None.
    """

    kind: str
    accepted_labels: SelectiveRisk | None
    images: SelectiveRisk
    bins: UncertaintyBins | None


@dataclass(frozen=True)
class UncertaintyEvaluation:
    """All kinds of uncertainty of a recognizer, and its most doubtful images.

    Attributes:
        kinds: Evaluation of each kind of uncertainty, at least one.
        doubtful_examples: At most six images with the highest mean uncertainty of the first kind.
    """

    kinds: tuple[LabelUncertainty, ...]
    doubtful_examples: tuple[Example, ...]


def accepted_label_decisions(
    probabilities: Array, targets: Array, known: Flags, uncertainty: npt.NDArray[np.floating]
) -> SelectiveDecisions:
    """Return the decisions on labels with a probability of 0.5 or more and a known target.

    Args:
        probabilities: Probabilities of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        uncertainty: Uncertainty of each label, ``(n, c)``.

    Returns:
        One decision per accepted label, whose error is 1 minus the target. There may be no
        decision.
    """
    rows, columns = np.nonzero(known & (probabilities >= THRESHOLD))
    values = uncertainty[rows, columns].astype(np.float64)
    return SelectiveDecisions(values, 1 - targets[rows, columns], rows, len(probabilities))


def image_decisions(
    probabilities: Array,
    targets: Array,
    known: Flags,
    uncertainty: npt.NDArray[np.floating],
    *,
    kind: str,
) -> SelectiveDecisions:
    """Return one decision per image with a known target: its mean uncertainty and error rate.

    The uncertainty of an image is the mean over its known labels. ``match_variance`` compares
    accepted labels only, so the mean is over the labels with a probability of 0.5 or more. Images
    without such a label are the most uncertain.

    Args:
        probabilities: Probabilities of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        uncertainty: Uncertainty of each label, ``(n, c)``.
        kind: Kind of the uncertainty.

    Returns:
        One decision per image, whose error is the fraction of known labels with a wrong decision.
    """
    values = image_uncertainties(probabilities, known, uncertainty, kind=kind)
    rows = np.flatnonzero(known.any(axis=1))
    wrong = np.abs((probabilities[rows] >= THRESHOLD) - targets[rows])
    error: Array = wrong.mean(axis=1, where=known[rows])
    has_value = np.isfinite(values)
    last = values[has_value].max() + 1 if has_value.any() else 0.0
    return SelectiveDecisions(
        np.where(has_value, values, last)[rows], error, rows, len(probabilities)
    )


def image_uncertainties(
    probabilities: Array, known: Flags, uncertainty: npt.NDArray[np.floating], *, kind: str
) -> Array:
    """Return the mean uncertainty of each image, ``(n,)``; see :func:`image_decisions`.

    An image without a label to average has infinite uncertainty.
    """
    is_compared = known & (probabilities >= THRESHOLD) if kind == "match_variance" else known
    sums = np.where(is_compared, uncertainty, 0).sum(axis=1, dtype=np.float64)
    counts = is_compared.sum(axis=1)
    means: Array = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    return means


def selective_risk(decisions: SelectiveDecisions, *, seed: int = 0) -> SelectiveRisk:
    """Return the risk-coverage curve of decisions, with bootstrap intervals over images.

    Args:
        decisions: At least one decision.
        seed: Seed of the resamples.

    Raises:
        InputError: If there is no decision, or a value is not finite.
    """
    curve = risk_coverage_of_errors(decisions.uncertainty, decisions.error)
    resampled = _resampled_statistics([decisions], seed)[0]
    return SelectiveRisk(
        curve,
        {
            name: shifted_bootstrap_interval(statistic(curve), resampled[name], within=(0.0, 1.0))
            for name, statistic in STATISTICS.items()
        },
    )


def selective_risk_gain(
    first: SelectiveDecisions, second: SelectiveDecisions, *, seed: int = 0
) -> dict[str, ConfidenceInterval]:
    """Return how much smaller the risk of the first decisions is, with paired intervals.

    Args:
        first: Decisions of one uncertainty or recognizer.
        second: Decisions of another uncertainty or recognizer for the same images.
        seed: Seed of the resamples, which are the same for ``first`` and ``second``.

    Returns:
        Intervals of the differences in ``area`` and ``risk_at_80``, second minus first. A
        difference above 0 means that ``first`` predicts its errors better.

    Raises:
        InputError: If there is no decision, or a value is not finite.
    """
    curves = [risk_coverage_of_errors(d.uncertainty, d.error) for d in (first, second)]
    resampled = _resampled_statistics([first, second], seed)
    return {
        name: shifted_bootstrap_interval(
            statistic(curves[1]) - statistic(curves[0]), resampled[1][name] - resampled[0][name]
        )
        for name, statistic in STATISTICS.items()
    }


def evaluate_label_uncertainty(
    probabilities: Array,
    targets: Array,
    known: Flags,
    uncertainty: npt.NDArray[np.floating],
    *,
    kind: str,
    seed: int = 0,
) -> LabelUncertainty:
    """Evaluate one kind of uncertainty of labels and images.

    Args:
        probabilities: Probabilities of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, at least once, ``(n, c)``.
        uncertainty: Finite uncertainty of each label, ``(n, c)``.
        kind: Kind of the uncertainty, such as ``bernoulli_variance``.
        seed: Seed of the bootstrap resamples.

    Raises:
        InputError: If no target is known, or an uncertainty is not finite.
    """
    labels = accepted_label_decisions(probabilities, targets, known, uncertainty)
    images = image_decisions(probabilities, targets, known, uncertainty, kind=kind)
    has_bins = len(labels.error) >= MIN_LABELS_PER_BIN * UNCERTAINTY_BINS
    return LabelUncertainty(
        kind,
        selective_risk(labels, seed=seed) if len(labels.error) else None,
        selective_risk(images, seed=seed),
        bin_by_uncertainty(labels.uncertainty, 1 - labels.error) if has_bins else None,
    )


def evaluate_uncertainties(
    predictions: Predictions,
    targets: Array,
    known: Flags,
    uncertainties: Mapping[str, npt.NDArray[np.floating]],
) -> UncertaintyEvaluation:
    """Evaluate all kinds of uncertainty of calibrated predictions.

    Args:
        predictions: Calibrated predictions of n images and c labels.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, at least once, ``(n, c)``.
        uncertainties: Uncertainty of each label, ``(n, c)``, by kind, at least one kind.

    Raises:
        NotFitted: If the predictions are uncalibrated.
        InputError: If no target is known, or an uncertainty is not finite.
    """
    p = predictions.probabilities
    kinds = tuple(
        evaluate_label_uncertainty(p, targets, known, values, kind=kind)
        for kind, values in uncertainties.items()
    )
    first, values = next(iter(uncertainties.items()))
    doubt = image_uncertainties(p, known, values, kind=first)
    order = np.argsort(-np.where(np.isfinite(doubt), doubt, -1), kind="stable")
    rows = [int(row) for row in order if np.isfinite(doubt[row])][:MAX_DOUBTFUL_EXAMPLES]
    return UncertaintyEvaluation(
        kinds, build_evaluation_examples(predictions, targets, known, rows)
    )


def _resampled_statistics(
    all_decisions: list[SelectiveDecisions], seed: int
) -> list[dict[str, Array]]:
    """Return each statistic on the same resamples of images, for each set of decisions."""
    n_decisions = max(len(decisions.error) for decisions in all_decisions)
    n_resamples = int(
        np.clip(MAX_RESAMPLED_DECISIONS // max(n_decisions, 1), MIN_RESAMPLES, MAX_RESAMPLES)
    )
    n_images = all_decisions[0].n_images
    values: list[dict[str, list[float]]] = [
        {name: [] for name in STATISTICS} for _ in all_decisions
    ]
    for rows in bootstrap_row_indices(n_images, n_resamples, seed):
        counts = np.bincount(rows, minlength=n_images)
        for decisions, lists in zip(all_decisions, values, strict=True):
            repeated = np.repeat(np.arange(len(decisions.error)), counts[decisions.image_rows])
            curve = (
                risk_coverage_of_errors(decisions.uncertainty[repeated], decisions.error[repeated])
                if len(repeated)
                else None
            )
            for name, statistic in STATISTICS.items():
                lists[name].append(np.nan if curve is None else statistic(curve))
    return [{name: np.array(numbers) for name, numbers in lists.items()} for lists in values]
