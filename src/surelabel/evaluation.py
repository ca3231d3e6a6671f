"""Predictions held against the truth."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics import (
    PROBABILITY,
    PROBABILITY_PER_CLASS,
    RANKING,
    RANKING_PER_CLASS,
    average_precision_per_image,
    noise_floor,
)
from surelabel.records import Array, Flags, LabelledImages, Predictions

EXAMPLES = 6  # pictures shown at each end
TAGS = 6  # labels shown of each
NEXT = 5  # labels named that need more labelled pictures
FLOORS = (
    "ece",
    "ece_of_candidates",
    "ace",
    "mce",
)  # metrics that chance alone keeps away from zero


@dataclass(frozen=True)
class Tag:
    """One label of one picture.

    Attributes:
        name: The label.
        value: Its probability, or its score where nothing is calibrated.
        present: Whether it is there; None where unknown.
    """

    name: str
    value: float
    present: bool | None


@dataclass(frozen=True)
class Example:
    """A picture that is worth a look.

    Attributes:
        path: The file.
        tags: Its likeliest labels, likeliest first.
        missed: Labels that are there and not among ``tags``.
        loss: Mean log loss of its labels, or 1 - average precision without probabilities.
        where: For some labels how strongly each patch speaks for them, ``(down, across)``.
        cover: What the patches cover: ``whole`` picture, its ``middle``, or it ``padded``.
    """

    path: str
    tags: tuple[Tag, ...]
    missed: tuple[str, ...]
    loss: float
    where: Mapping[str, Array] = field(default_factory=dict)
    cover: str = "whole"


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


def judge(predictions: Predictions, labelled: LabelledImages) -> Evaluation:
    """Hold predictions against the truth of the same pictures.

    Ranking metrics always; probability metrics, with what chance alone would give, only where
    something calibrated the predictions.

    Raises:
        InputError: names differ, a picture has no labels, or nothing at all is known.
    """
    rows = rows_of(predictions, labelled)
    targets, known = labelled.targets[rows], labelled.known[rows]
    if not known.any():
        raise InputError(
            "No label of these pictures is known, so there is nothing to judge. "
            "Check that the label file and the names agree."
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
    worst, best = _examples(predictions, targets, known)
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
    )


@dataclass(frozen=True)
class Coverage:
    """How well labelled pictures cover their labels.

    Attributes:
        positives: Label → pictures that are known to have it.
        fewest: Labels with the fewest positives, those to label next.
    """

    positives: dict[str, int]
    fewest: list[str]


def coverage(labelled: LabelledImages) -> Coverage:
    """Count the positives of each label.

    Example:
        >>> from surelabel.records import LabelledImages
        >>> coverage(LabelledImages(["a.jpg", "b.jpg"], ["dog", "cat"], [[1, 0], [1, 1]]))
        Coverage(positives={'dog': 2, 'cat': 1}, fewest=['cat', 'dog'])
    """
    counts = ((labelled.targets >= 0.5) & labelled.known).sum(axis=0).tolist()
    positives = dict(zip(labelled.names, counts, strict=True))
    return Coverage(positives, sorted(positives, key=lambda name: positives[name])[:NEXT])


def _mean_of(metric: str) -> Callable[[Array, Array, Flags], float]:
    def mean(probabilities: Array, targets: Array, known: Flags) -> float:
        values = PROBABILITY_PER_CLASS[metric](probabilities, targets, known)
        return float(values[~np.isnan(values)].mean()) if not np.isnan(values).all() else np.nan

    return mean


def _examples(
    predictions: Predictions, targets: Array, known: Flags
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    losses = _losses(predictions, targets, known)
    order = np.argsort(losses, kind="stable")
    order = order[~np.isnan(losses[order])]
    several = [r for r in order if (targets[r] * known[r]).sum() >= 2]
    best = several[:EXAMPLES]
    worst = [r for r in order[::-1] if r not in set(best)][:EXAMPLES]
    shown = [
        [_example(predictions, targets, known, losses, r) for r in rows] for rows in (worst, best)
    ]
    return tuple(shown[0]), tuple(shown[1])


def _losses(predictions: Predictions, targets: Array, known: Flags) -> Array:
    if predictions.calibration is None:
        scores = predictions.scores.astype(np.float64)
        return 1 - average_precision_per_image(scores, targets, known)
    logits = predictions.logits.astype(np.float64)  # type: ignore[union-attr]
    elements = np.where(known, np.logaddexp(0, logits) - targets * logits, 0)
    with np.errstate(invalid="ignore"):
        losses: Array = elements.sum(axis=1) / known.sum(axis=1)
    return losses


def _example(
    predictions: Predictions, targets: Array, known: Flags, losses: Array, row: int
) -> Example:
    calibrated = predictions.calibration is not None
    values = predictions.probabilities[row] if calibrated else predictions.scores[row]
    order = np.argsort(-values, kind="stable")
    present = [bool(targets[row, c] >= 0.5) if known[row, c] else None for c in order]
    tags = [
        Tag(predictions.names[c], float(values[c]), there)
        for c, there in zip(order[:TAGS], present, strict=False)
    ]
    missed = [predictions.names[c] for c, there in zip(order, present, strict=True) if there]
    return Example(
        path=predictions.paths[row],
        tags=tuple(tags),
        missed=tuple(name for name in missed if name not in {t.name for t in tags}),
        loss=float(losses[row]),
    )
