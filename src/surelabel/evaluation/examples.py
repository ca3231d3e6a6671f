"""Select the example images of an evaluation with the highest and the lowest loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.evaluation.region_maps import RegionMaps
from surelabel.metrics import average_precision_per_image
from surelabel.records import Predictions

MAX_EXAMPLES = 6  # examples with the highest loss, and with the lowest loss
LABELS_PER_EXAMPLE = 6


@dataclass(frozen=True)
class ExampleLabel:
    """Predicted label of an example image.

    Attributes:
        name: Name of the label.
        score: Probability, or raw score if the predictions are uncalibrated.
        is_positive: Whether the target is at least 0.5. If None, the target is unknown.
    """

    name: str
    score: float
    is_positive: bool | None


@dataclass(frozen=True)
class Example:
    """Image of an evaluation with a very high or a very low loss or uncertainty.

    Attributes:
        path: Path of the image file.
        labels: Labels with the highest scores, in decreasing order.
        missed_labels: Positive labels that are not among ``labels``.
        loss: Mean log loss over the labels with a known target, or 1 - average precision if the
            predictions are uncalibrated.
        regions: Heat maps of ``labels``. If None, heat maps are not available.
    """

    path: str
    labels: tuple[ExampleLabel, ...]
    missed_labels: tuple[str, ...]
    loss: float
    regions: RegionMaps | None = None

    @property
    def heat_maps(self) -> Mapping[str, Array]:
        """Return heat maps by label, ``(down, across)``, or an empty mapping without regions."""
        return {} if self.regions is None else self.regions.maps


def select_evaluation_examples(
    predictions: Predictions, targets: Array, known: Flags
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return at most six images with the highest loss, and at most six with the lowest loss.

    Images with the lowest loss are selected among images with at least two positive labels. They
    are not selected as images with the highest loss. Images with an undefined loss are left out.

    Args:
        predictions: Predictions of n images and c labels.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
    """
    losses = _example_image_losses(predictions, targets, known)
    order = np.argsort(losses, kind="stable")
    order = order[~np.isnan(losses[order])]
    with_two_labels = [row for row in order if (targets[row] * known[row]).sum() >= 2]
    best = with_two_labels[:MAX_EXAMPLES]
    worst = [row for row in order[::-1] if row not in set(best)][:MAX_EXAMPLES]
    worst_examples, best_examples = (
        tuple(_build_evaluation_example(predictions, targets, known, losses, row) for row in rows)
        for rows in (worst, best)
    )
    return worst_examples, best_examples


def build_evaluation_examples(
    predictions: Predictions, targets: Array, known: Flags, rows: Sequence[int]
) -> tuple[Example, ...]:
    """Return the examples of some images, with their labels and losses.

    Args:
        predictions: Predictions of n images and c labels.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        rows: Row of each image.
    """
    losses = _example_image_losses(predictions, targets, known)
    return tuple(
        _build_evaluation_example(predictions, targets, known, losses, row) for row in rows
    )


def _example_image_losses(predictions: Predictions, targets: Array, known: Flags) -> Array:
    """Return the loss of each image, ``(n,)``, or NaN if the loss of an image is undefined."""
    if predictions.calibration is None:
        scores = predictions.scores.astype(np.float64)
        return 1 - average_precision_per_image(scores, targets, known)
    logits = predictions.logits.astype(np.float64)  # type: ignore[union-attr]
    elements = np.where(known, np.logaddexp(0, logits) - targets * logits, 0)
    with np.errstate(invalid="ignore"):
        losses: Array = elements.sum(axis=1) / known.sum(axis=1)
    return losses


def _build_evaluation_example(
    predictions: Predictions, targets: Array, known: Flags, losses: Array, row: int
) -> Example:
    """Return the example of one image with its top labels and its missed labels."""
    is_calibrated = predictions.calibration is not None
    scores = predictions.probabilities[row] if is_calibrated else predictions.scores[row]
    order = np.argsort(-scores, kind="stable")
    are_positive = [bool(targets[row, c] >= 0.5) if known[row, c] else None for c in order]
    labels = [
        ExampleLabel(predictions.names[c], float(scores[c]), is_positive)
        for c, is_positive in zip(order[:LABELS_PER_EXAMPLE], are_positive, strict=False)
    ]
    positives = [
        predictions.names[c]
        for c, is_positive in zip(order, are_positive, strict=True)
        if is_positive
    ]
    label_names = {label.name for label in labels}
    return Example(
        path=predictions.paths[row],
        labels=tuple(labels),
        missed_labels=tuple(name for name in positives if name not in label_names),
        loss=float(losses[row]),
    )
