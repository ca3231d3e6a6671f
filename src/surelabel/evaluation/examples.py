"""The pictures of an evaluation that are worth a look."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surelabel.evaluation.regions import Regions
from surelabel.metrics import average_precision_per_image
from surelabel.records import Array, Flags, Predictions

EXAMPLES = 6  # pictures shown at each end
TAGS = 6  # labels shown of each


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
        regions: Where in it ``tags`` are seen; None where nothing says so.
    """

    path: str
    tags: tuple[Tag, ...]
    missed: tuple[str, ...]
    loss: float
    regions: Regions | None = None

    @property
    def where(self) -> Mapping[str, Array]:
        """Label → how strongly each region speaks for it, ``(down, across)``; may be empty."""
        return {} if self.regions is None else self.regions.maps


def chosen_examples(
    predictions: Predictions, targets: Array, known: Flags
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The worst pictures, and the best of those with two labels or more."""
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
