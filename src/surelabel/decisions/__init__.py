"""Decisions: what to show, apart from how sure it is.

``track(logits, targets, known) -> TrackRecord`` keeps how a recognizer did on labelled pictures.
From that, ``OPERATING_POINTS[name](record, *, settings) -> Thresholds`` meets a goal for each label
and ``GUARANTEES[name](record, *, settings) -> Guarantee`` makes a promise about all of them.
Add one line here for a new one.
"""

from collections.abc import Callable

from surelabel.decisions.coverage import RiskCoverage, risk_coverage
from surelabel.decisions.guarantee import Guarantee
from surelabel.decisions.operating import as_many, cost, f1, precision, recall
from surelabel.decisions.record import TrackRecord
from surelabel.decisions.risk import at_most_missed, at_most_missed_on_average, at_most_wrong
from surelabel.decisions.thresholds import Thresholds
from surelabel.decisions.tracking import track

OPERATING_POINTS: dict[str, Callable[..., Thresholds]] = {
    "as_many": as_many,
    "cost": cost,
    "f1": f1,
    "precision": precision,
    "recall": recall,
}
GUARANTEES: dict[str, Callable[..., Guarantee]] = {
    "at_most_missed": at_most_missed,
    "at_most_missed_on_average": at_most_missed_on_average,
    "at_most_wrong": at_most_wrong,
}

__all__ = [
    "GUARANTEES",
    "OPERATING_POINTS",
    "Guarantee",
    "RiskCoverage",
    "Thresholds",
    "TrackRecord",
    "as_many",
    "at_most_missed",
    "at_most_missed_on_average",
    "at_most_wrong",
    "cost",
    "f1",
    "precision",
    "recall",
    "risk_coverage",
    "track",
]
