"""Convert scores of fitted heads to log-odds by a link, a sigmoid or a calibrator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.bench.calibrated.heads import Head, ScoresToLogits
from surelabel.calibration import Calibrator, Platt, Temperature, cross_fitted_logits
from surelabel.config import Run
from surelabel.metrics import log_loss_of_logits
from surelabel.records import LabelledFeatures

HeadScores = tuple[Array, Array]  # scores of validation and test images


@dataclass(frozen=True)
class HeadReadout:
    """Log-odds of all fits of one head, converted from the scores by one readout.

    Attributes:
        title: Title of the table row.
        head: Key of the head in ``HEADS``.
        run: Run with the settings selected on the validation split.
        scores: Test scores, one array ``(n, c)`` for each fit.
        logits: Test log-odds of the readout, one array ``(n, c)`` for each fit.
    """

    title: str
    head: str
    run: Run
    scores: tuple[Array, ...]
    logits: tuple[Array, ...]


def head_readouts(
    key: str, head: Head, run: Run, fits: Sequence[HeadScores], validation: LabelledFeatures
) -> Iterator[HeadReadout]:
    """Iterate over the readouts of a head, each one without and with Platt scaling.

    If the loss has no link, the readouts are temperature scaling and Platt scaling of the scores.

    Args:
        key: Key of the head in ``HEADS``.
        head: Head that was fitted.
        run: Run with the selected settings.
        fits: Validation and test scores of each fit.
        validation: Validation split, on which a calibrator is fitted for each fit of the head.
    """
    scores = tuple(test for _, test in fits)
    for title, to_logits in _readout_conversions(head, validation):
        yield HeadReadout(title, key, run, scores, tuple(to_logits(*fit) for fit in fits))


def readout_validation_log_loss(head: Head, scores: Array, validation: LabelledFeatures) -> float:
    """Return the validation log loss of the first readout of a head.

    If only a calibrator can convert the scores, the log-odds are from Platt scaling, which is
    cross-fitted on the validation split.

    Args:
        head: Head that was fitted.
        scores: Validation scores, ``(n, c)``.
        validation: Validation split.
    """
    readout = next(iter(head.readouts.values()))
    targets, known = validation.targets, validation.known
    logits = readout(scores) if readout else cross_fitted_logits(Platt, scores, targets, known)
    return log_loss_of_logits(_clip_readout_logits(logits), targets, known)


def _readout_conversions(
    head: Head, validation: LabelledFeatures
) -> Iterator[tuple[str, Callable[[Array, Array], Array]]]:
    """Yield row titles and functions that return test log-odds from validation and test scores."""
    for suffix, readout in head.readouts.items():
        title = head.title + suffix
        if readout is None:
            yield (
                f"{title} + temperature",
                _calibrated_readout(Temperature, _identity_readout, validation),
            )
            yield f"{title} + Platt", _calibrated_readout(Platt, _identity_readout, validation)
        else:
            yield title, _uncalibrated_readout(readout)
            yield f"{title} + Platt", _calibrated_readout(Platt, readout, validation)


def _uncalibrated_readout(readout: ScoresToLogits) -> Callable[[Array, Array], Array]:
    return lambda _, test: _clip_readout_logits(readout(test))


def _calibrated_readout(
    make_calibrator: Callable[[], Calibrator],
    readout: ScoresToLogits,
    validation: LabelledFeatures,
) -> Callable[[Array, Array], Array]:
    def to_logits(validation_scores: Array, test_scores: Array) -> Array:
        calibrator = make_calibrator().fit(
            readout(validation_scores), validation.targets, validation.known
        )
        return np.asarray(calibrator.logits(readout(test_scores)), dtype=float)

    return to_logits


def _identity_readout(scores: Array) -> Array:
    return scores


def _clip_readout_logits(logits: Array) -> Array:
    return np.clip(logits, -LOGIT_LIMIT, LOGIT_LIMIT)
