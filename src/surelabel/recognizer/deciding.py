"""What to show: from a stated goal to thresholds, by how the recognizer did where it calibrated."""

from typing import Any

import numpy as np

from surelabel.decisions import GUARANTEES, OPERATING_POINTS, Guarantee, Thresholds, TrackRecord
from surelabel.decisions.record import THRESHOLDS
from surelabel.errors import NotFitted
from surelabel.recognizer.calibrating import FEW
from surelabel.recognizer.recognizer import Recognizer
from surelabel.tables import choose


def operating_point(recognizer: Recognizer, goal: str, **settings: Any) -> Thresholds:
    """From which probability on each label is shown, so that a goal is met.

    Args:
        recognizer: Calibrated on 20 pictures or more; for ``cost`` any calibration does.
        goal: Entry of ``OPERATING_POINTS``.
        settings: Of that entry.

    Raises:
        UnknownName, ConfigError: there is no such goal or setting.
        NotFitted: nothing calibrated it, or it is not known how it did there.
    """
    choice = choose(OPERATING_POINTS, goal, **settings)
    if goal == "cost" and recognizer.calibrated_on and _record(recognizer) is None:
        found: Thresholds = choice(_nothing_seen(len(recognizer.names)))
        return found
    found = choice(_needed(recognizer))
    return found


def guarantee(recognizer: Recognizer, goal: str, **settings: Any) -> Guarantee:
    """One threshold for all labels, with what can be promised of it.

    Args:
        recognizer: Calibrated on labelled pictures.
        goal: Entry of ``GUARANTEES``.
        settings: Of that entry.

    Raises:
        UnknownName, ConfigError: there is no such goal or setting.
        NotFitted: it is not known how the recognizer does on labelled pictures.
    """
    if recognizer.calibration and not recognizer.calibration.labelled:
        raise NotFitted(
            "A guarantee needs labelled pictures, and this recognizer was calibrated without: "
            "calibrate it on 20 or more (`surelabel calibrate`), or ask for a goal, such as "
            "--best-f1, which then is what its probabilities promise."
        )
    found: Guarantee = choose(GUARANTEES, goal, **settings)(_needed(recognizer))
    return found


def _record(recognizer: Recognizer) -> TrackRecord | None:
    """Of the probabilities as they are: those that were moved have none yet."""
    found = recognizer.calibration
    return found.record if found and not found.shift else None


def _needed(recognizer: Recognizer) -> TrackRecord:
    record = _record(recognizer)
    if record is None:
        raise NotFitted(
            "Such a goal needs to know how the recognizer does on pictures like these: calibrate "
            f"it (`surelabel calibrate`) on {FEW} or more with labels or, less surely, without "
            "(--unlabelled). What is known ends where the calibration is moved to other pictures; "
            "where there are probabilities, a --threshold shows them."
        )
    return record


def _nothing_seen(labels: int) -> TrackRecord:
    """The record of no pictures: thresholds that follow from probabilities alone need no more."""
    each, all_labels = np.zeros((labels, THRESHOLDS.size)), np.zeros(THRESHOLDS.size)
    return TrackRecord(
        thresholds=THRESHOLDS,
        shown=each,
        present=each,
        expected=each,
        tagged=all_labels,
        wrong=all_labels,
        missed=all_labels,
        pictures=0,
        with_labels=0,
    )
