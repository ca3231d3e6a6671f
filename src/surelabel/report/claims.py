"""What the encoder alone and the recognizer say: how well they rank, and what they show."""

from dataclasses import dataclass

import numpy as np

from surelabel.decisions import as_many, track
from surelabel.evaluation import Evaluation, LabelCounts, Together, label_counts, together
from surelabel.metrics import RANKING
from surelabel.records import Array, Flags, Predictions

HALF = 0.5  # the probability from which a label counts as claimed
ALONE, NOW, TRUTH = "encoder alone", "this recognizer", "truth"
CALLED = {ALONE: "the encoder alone", NOW: "this recognizer"}
RANKED = ("mean_average_precision", "mean_average_precision_per_image")


@dataclass(frozen=True)
class Claims:
    """What somebody shows in the judged pictures.

    Attributes:
        threshold: The probability from which labels are shown: that which shows as many as are
            expected.
        counts: How many labels each picture gets.
        together: How often two labels are in one picture.
        right: Share of the labels shown that are there; NaN where none is shown.
        sure: Labels with a probability of 50 % or more, a picture.
    """

    threshold: float
    counts: LabelCounts
    together: Together
    right: float
    sure: float


def sides(evaluation: Evaluation) -> dict[str, Predictions]:
    """Who → what they say: the encoder alone, where that is another answer, and the recognizer."""
    alone = {} if evaluation.alone is None else {ALONE: evaluation.alone}
    return alone | {NOW: evaluation.predictions}


def claimed(evaluation: Evaluation) -> dict[str, Claims]:
    """Who → what they show; without those who have no probabilities, and empty if the recognizer
    has none."""
    if evaluation.predictions.calibration is None:
        return {}
    return {
        who: _claims(said, evaluation.targets, evaluation.known)
        for who, said in sides(evaluation).items()
        if said.calibration is not None
    }


def _claims(said: Predictions, targets: Array, known: Flags) -> Claims:
    p, logits = said.probabilities, said.logits
    assert logits is not None  # there are probabilities
    threshold = float(as_many(track(logits, p, known)).values[0])
    shown = known & (p >= threshold)
    return Claims(
        threshold,
        label_counts(p, targets, known, threshold=threshold),
        together(p, targets, known, threshold=threshold),
        float(targets[shown].mean()) if shown.any() else float("nan"),
        float((known & (p >= HALF)).sum(axis=1).mean()),
    )


def ranked(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Metric of ranking → who → value."""
    truth = evaluation.targets, evaluation.known
    return {
        metric: {
            who: RANKING[metric](said.scores.astype(np.float64), *truth)
            for who, said in sides(evaluation).items()
        }
        for metric in RANKED
    }


def pairs_a_picture(shares: Array) -> float:
    """Of two labels each, from the shares of pictures that have both, ``(c, c)``.

    Example:
        >>> pairs_a_picture(np.array([[0.9, 0.5, 0.25], [0.5, 0.6, 0.0], [0.25, 0.0, 0.3]]))
        0.75
    """
    return float(np.nansum(np.triu(shares, k=1)))
