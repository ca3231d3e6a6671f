"""How a recognizer did on labelled pictures, in a few numbers a label."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.errors import DataError, InputError
from surelabel.records import Array

THRESHOLDS: Array = np.concatenate(([0.0], expit(np.arange(-80, 81) / 10), [1.0]))
SLACK = 1e-6  # what sums of many shares may be off by


@dataclass(frozen=True)
class TrackRecord:
    """What was shown, right, wrong and missed at each of ``g`` thresholds of the probability.

    A label is shown in a picture where its probability is at or above the threshold; at the last
    threshold, 1, nothing is shown. Only what is known counts, and a picture of which nothing is
    known does not. Graded targets count by their value. Two records of the same labels add up.

    Attributes:
        thresholds: Rising from 0 to 1, ``(g,)``: a tenth of log-odds apart between -8 and 8.
        shown: Known decisions at or above each threshold, ``(c, g)``.
        present: How many of these are right, as the sum of their targets, ``(c, g)``.
        expected: How many were to be right, as the sum of their probabilities, ``(c, g)``.
        tagged: Pictures in which something is shown, ``(g,)``.
        wrong: Over these, the sum of the share of wrong ones among the shown, ``(g,)``.
        missed: Over pictures with a present label, the sum of the share of present ones that are
            not shown, ``(g,)``.
        pictures: How many pictures there are of which something is known.
        with_labels: In how many of them a label is present.
    """

    thresholds: Array
    shown: Array
    present: Array
    expected: Array
    tagged: Array
    wrong: Array
    missed: Array
    pictures: int
    with_labels: int

    @property
    def support(self) -> Array:
        """Known present labels, ``(c,)``."""
        support: Array = self.present[:, 0]
        return support

    def __add__(self, other: "TrackRecord") -> "TrackRecord":
        """Both together, as if tracked at once.

        Raises:
            InputError: they are of other numbers of labels, or other thresholds.
        """
        if self.shown.shape != other.shown.shape or (self.thresholds != other.thresholds).any():
            raise InputError(
                "Two track records add up when they are of the same labels and thresholds. Got "
                f"(labels, thresholds) {self.shown.shape} and {other.shown.shape}; track both "
                "with one version."
            )
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name != "thresholds"
        }
        return TrackRecord(thresholds=self.thresholds, **sums)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All of it as arrays by name, ready to be saved; counts of pictures have one element."""
        arrays = {f.name: np.atleast_1d(getattr(self, f.name)) for f in fields(self)}
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    @classmethod
    def restore(cls, state: Mapping[str, npt.ArrayLike]) -> "TrackRecord":
        """A record from what ``state`` gave.

        Raises:
            DataError: something is missing, too many, or cannot be a track record.
        """
        names = [f.name for f in fields(cls)]
        if set(state) != set(names):
            raise DataError(
                f"A saved track record must hold {', '.join(names)}. "
                f"Got {', '.join(sorted(state)) or 'nothing'}; calibrate again."
            )
        arrays = {name: _numbers(name, state[name]) for name in names}
        record = cls(
            **{name: arrays[name] for name in names[:-2]},
            pictures=_count("pictures", arrays["pictures"]),
            with_labels=_count("with_labels", arrays["with_labels"]),
        )
        for damage in _damage(record):
            raise DataError(f"A saved track record is damaged: {damage}. Calibrate again.")
        return record


def _numbers(name: str, value: npt.ArrayLike) -> Array:
    """An array of finite numbers that are not negative."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all() or (array < 0).any():
        raise DataError(
            f"A saved track record must hold finite numbers of at least 0. {name} does not; "
            "calibrate again."
        )
    return array.astype(np.float64)


def _count(name: str, value: Array) -> int:
    """A whole number in an array of one element."""
    if value.size != 1 or value.item() != int(value.item()):
        raise DataError(
            f"{name} of a saved track record must be one whole number. Got {value}; "
            "calibrate again."
        )
    return int(value.item())


def _damage(record: TrackRecord) -> Iterator[str]:
    """What no track record can be, and this one is."""
    r, t = record, record.thresholds
    tables, rows = (r.shown, r.present, r.expected), (r.tagged, r.wrong, r.missed)
    if {a.shape for a in tables} != {(len(r.shown), t.size)} or {a.shape for a in rows} != {
        t.shape
    }:
        yield f"there is not one number for each of {t.size} thresholds"
        return
    if t.size < 2 or t[0] != 0 or t[-1] != 1 or (np.diff(t) <= 0).any():
        yield "thresholds do not rise from 0 to 1"
    if any((np.diff(a) > SLACK).any() for a in (*tables, r.tagged, -r.missed)):
        yield "more is shown at a higher threshold"
    if r.shown[:, -1].any() or r.tagged[-1]:
        yield "something is shown at 1"
    if any((a > r.shown + SLACK).any() for a in tables) or (r.wrong > r.tagged + SLACK).any():
        yield "more is right, or wrong, than is shown"
    if (r.missed > r.with_labels + SLACK).any():
        yield "more is missed than is there"
    if not (0 < r.tagged[0] <= r.pictures and r.with_labels <= r.pictures):
        yield "the numbers of pictures do not fit each other"
