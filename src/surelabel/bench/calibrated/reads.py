"""Fitted heads, each read in several ways: through its link, a sigmoid, or a calibrator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.bench.calibrated.heads import Head, Reading
from surelabel.calibration import Calibrator, Platt, Temperature, cross_fitted
from surelabel.config import Run
from surelabel.metrics import log_loss_of_logits
from surelabel.records import LOGIT_LIMIT, Array, LabelledFeatures

Scores = tuple[Array, Array]  # of validation and test pictures


@dataclass(frozen=True)
class Read:
    """All fits of one head, read in one way.

    Attributes:
        title: Of its row.
        head: Which head.
        run: With which settings, chosen on validation.
        scores: Of the test pictures, one ``(n, c)`` a fit.
        logits: Their log-odds in this reading.
    """

    title: str
    head: str
    run: Run
    scores: tuple[Array, ...]
    logits: tuple[Array, ...]


def reads(
    key: str, head: Head, run: Run, fits: Sequence[Scores], validation: LabelledFeatures
) -> Iterator[Read]:
    """All readings of a head; calibrators are fitted on the validation pictures, fit by fit."""
    scores = tuple(test for _, test in fits)
    for title, logits_of in _readings(head, validation):
        yield Read(title, key, run, scores, tuple(logits_of(*fit) for fit in fits))


def validation_loss(head: Head, scores: Array, validation: LabelledFeatures) -> float:
    """Log loss as the head's theory reads it; cross-fitted where only a calibrator can."""
    read = next(iter(head.readings.values()))
    targets, known = validation.targets, validation.known
    logits = read(scores) if read else cross_fitted(Platt, scores, targets, known)
    return log_loss_of_logits(_inside(logits), targets, known)


def _readings(
    head: Head, validation: LabelledFeatures
) -> Iterator[tuple[str, Callable[[Array, Array], Array]]]:
    """Titles of rows, each with what makes test logits of validation and test scores."""
    for suffix, read in head.readings.items():
        title = head.title + suffix
        if read is None:
            yield f"{title} + temperature", _calibrated(Temperature, _as_it_is, validation)
            yield f"{title} + Platt", _calibrated(Platt, _as_it_is, validation)
        else:
            yield title, _plain(read)
            yield f"{title} + Platt", _calibrated(Platt, read, validation)


def _plain(read: Reading) -> Callable[[Array, Array], Array]:
    return lambda _, test: _inside(read(test))


def _calibrated(
    make: Callable[[], Calibrator], read: Reading, validation: LabelledFeatures
) -> Callable[[Array, Array], Array]:
    def logits(held_out: Array, test: Array) -> Array:
        fitted = make().fit(read(held_out), validation.targets, validation.known)
        return np.asarray(fitted.logits(read(test)), dtype=float)

    return logits


def _as_it_is(scores: Array) -> Array:
    return scores


def _inside(logits: Array) -> Array:
    return np.clip(logits, -LOGIT_LIMIT, LOGIT_LIMIT)
