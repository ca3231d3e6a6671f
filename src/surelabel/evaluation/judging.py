"""Predictions held against the truth."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.evaluation.before import Before, judged_before
from surelabel.evaluation.budget import Budget
from surelabel.evaluation.examples import Example, chosen_examples
from surelabel.metrics import (
    PROBABILITY,
    PROBABILITY_PER_CLASS,
    RANKING,
    RANKING_PER_CLASS,
    Interval,
    noise_floor,
)
from surelabel.records import Array, Flags, LabelledImages, Predictions

FLOORS = (
    "ece",
    "ece_of_candidates",
    "ace",
    "mce",
)  # metrics that chance alone keeps away from zero


@dataclass(frozen=True)
class Evaluation:
    """How good and how honest predictions are.

    Attributes:
        predictions: What was judged.
        targets: The truth, ``(n, c)``.
        known: What is known of it, ``(n, c)``.
        summary: Metric → pooled value.
        per_class: Metric → ``(c,)``, NaN where undefined.
        undefined: Metric → how many classes are undefined.
        floor: Metric → what a perfectly calibrated recognizer would show by chance alone.
        class_floor: The same of the mean over classes.
        worst: Pictures with the highest loss.
        best: Pictures with two labels or more and the lowest loss.
        before: The same decisions before the calibrator; None where there was none, or nothing
            gave log-odds before it.
        budget: How many labels its calibrator needs; None where nobody asked.
        intervals: Metric → 95 % interval over pictures, for those that were asked for.
        alone: What the encoder says of the same pictures and labels without any adaptation; None
            where that is what was judged, or nobody asked.
    """

    predictions: Predictions
    targets: Array
    known: Flags
    summary: dict[str, float]
    per_class: dict[str, Array]
    undefined: dict[str, int]
    floor: dict[str, float]
    class_floor: dict[str, float]
    worst: tuple[Example, ...]
    best: tuple[Example, ...]
    before: Before | None = None
    budget: Budget | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    alone: Predictions | None = None

    @property
    def class_means(self) -> dict[str, float]:
        """Metric → mean over the classes for which it is defined; NaN when there is none."""
        defined = {name: values[~np.isnan(values)] for name, values in self.per_class.items()}
        return {name: float(v.mean()) if v.size else np.nan for name, v in defined.items()}


def rows_of(predictions: Predictions, labelled: LabelledImages) -> npt.NDArray[np.int64]:
    """For each prediction the row of its picture among the labelled ones.

    Raises:
        InputError: a predicted picture has no labels, or the names differ.
    """
    if list(predictions.names) != list(labelled.names):
        raise InputError(
            f"Predictions and labels must have the same names in the same order. Got "
            f"{list(predictions.names)[:5]} … and {list(labelled.names)[:5]} …."
        )
    place = {path: row for row, path in enumerate(labelled.paths)}
    strange = [p for p in predictions.paths if p not in place]
    if strange:
        raise InputError(
            f"{len(strange)} of {len(predictions)} predicted pictures have no labels, "
            f"such as {strange[0]}."
        )
    return np.array([place[p] for p in predictions.paths])


def judge(
    predictions: Predictions, labelled: LabelledImages, *, before: npt.ArrayLike | None = None
) -> Evaluation:
    """Hold predictions against the truth of the same pictures.

    Ranking metrics always; probability metrics, with what chance alone would give, only where
    something calibrated the predictions.

    Args:
        predictions: What to judge.
        labelled: The truth, of these pictures and maybe others, with the same names.
        before: Log-odds of the same pictures and labels before the calibrator, ``(n, c)`` in the
            order of ``predictions``, to show what it did; None where it was given raw scores.

    Raises:
        InputError: names differ, a picture has no labels, nothing at all is known, or ``before``
            has another shape or stands beside predictions that nothing calibrated.
    """
    rows = rows_of(predictions, labelled)
    targets, known = labelled.targets[rows], labelled.known[rows]
    if not known.any():
        raise InputError(
            "No label of these pictures is known, so there is nothing to judge. "
            "Check that the label file and the names agree."
        )
    if before is not None and predictions.calibration is None:
        raise InputError(
            "before is what a calibrator was given, and nothing calibrated these predictions. "
            "Leave it out, or calibrate first."
        )
    scores = predictions.scores.astype(np.float64)
    summary = {name: metric(scores, targets, known) for name, metric in RANKING.items()}
    per_class = {name: m(scores, targets, known) for name, m in RANKING_PER_CLASS.items()}
    floor: dict[str, float] = {}
    class_floor: dict[str, float] = {}
    if predictions.calibration is not None:
        probabilities = predictions.probabilities
        summary |= {
            name: metric(probabilities, targets, known) for name, metric in PROBABILITY.items()
        }
        per_class |= {
            name: m(probabilities, targets, known) for name, m in PROBABILITY_PER_CLASS.items()
        }
        floor = {name: noise_floor(PROBABILITY[name], probabilities, known) for name in FLOORS}
        class_floor = {name: noise_floor(_mean_of(name), probabilities, known) for name in FLOORS}
    worst, best = chosen_examples(predictions, targets, known)
    return Evaluation(
        predictions=predictions,
        targets=targets,
        known=known,
        summary=summary,
        per_class=per_class,
        undefined={name: int(np.isnan(values).sum()) for name, values in per_class.items()},
        floor=floor,
        class_floor=class_floor,
        worst=worst,
        best=best,
        before=None if before is None else judged_before(before, targets, known),
    )


def _mean_of(metric: str) -> Callable[[Array, Array, Flags], float]:
    def mean(probabilities: Array, targets: Array, known: Flags) -> float:
        values = PROBABILITY_PER_CLASS[metric](probabilities, targets, known)
        return float(values[~np.isnan(values)].mean()) if not np.isnan(values).all() else np.nan

    return mean
