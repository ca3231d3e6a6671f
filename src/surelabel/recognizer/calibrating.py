"""What makes log-odds of a recognizer's scores, and how it did where it was fitted."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.backbones import Backbone, shared_calibration
from surelabel.calibration import CALIBRATORS, Calibrator, cross_fitted, label_shift
from surelabel.config import Run
from surelabel.decisions import TrackRecord, track
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.records import LOGIT_LIMIT, Array, Flags

OLD_SHARES = 100.0  # pictures that the shares of labels so far weigh, against those of an archive
FOLDS = 5  # of the pictures that calibrate, for an honest record of how it went
MOVED = ", moved to "
FEW = 20  # pictures with known labels below which no record is kept


@dataclass(frozen=True)
class Calibration:
    """What makes log-odds of scores.

    Attributes:
        name: Entry of ``CALIBRATORS``.
        fitted: The fitted calibrator.
        about: On what it was fitted, in words.
        record: How calibrated probabilities did on those pictures, each by a calibrator that had
            not seen it, before any shift; what they promise there, where no label was known; None
            where it is not known.
        shift: Added to the log-odds of each label, for an archive in which labels are more or
            less common; empty for none.
        labelled: Whether the record was held against labels: no guarantee rests on a promise.
    """

    name: str
    fitted: Calibrator
    about: str
    record: TrackRecord | None = None
    shift: tuple[float, ...] = ()
    labelled: bool = True

    def logits(self, raw: npt.ArrayLike) -> Array:
        """Calibrated log-odds in [-40, 40] of log-odds or raw scores ``(n, c)``."""
        found = self.fitted.logits(raw)
        return (found + self.shift).clip(-LOGIT_LIMIT, LOGIT_LIMIT) if self.shift else found

    def state(self) -> dict[str, Any]:
        """All but the record, ready for JSON."""
        made: dict[str, Any] = {"calibrator": self.name, "state": self.fitted.state()}
        made["about"] = self.about
        if self.shift:
            made["shift"] = list(self.shift)
        if not self.labelled:
            made["labelled"] = False
        return made

    def for_other_names(self) -> "Calibration | None":
        """What of it holds for other names; said with one warning where it is not all of it."""
        if self.fitted.shared and not self.shift:
            return replace(self, record=None)
        shared = self.fitted.shared_part()
        kept = next((n for n, entry in CALIBRATORS.items() if entry is type(shared)), None)
        whole = f"{self.name}, moved to other frequencies" if self.shift else self.name
        rest = (
            f"What all labels share of it ({kept}) is kept for the new names."
            if kept
            else "It is dropped with the old names: calibrate again to have probabilities."
        )
        warnings.warn(f"The calibration ({whole}) belongs to single labels. {rest}", stacklevel=3)
        if shared is None or kept is None:
            return None
        about = f"{self._unmoved}, the part that all labels share"
        return Calibration(kept, shared, about, labelled=self.labelled)

    def moved(self, raw: npt.ArrayLike) -> "Calibration":
        """The same for an archive of unlabelled pictures ``(n, c)``, whose labels are rarer or
        more common than where it was calibrated.

        The calibrator's own mean there is what the archive is held against, not the share that was
        seen: a calibrator that all labels share is a little off for each of them, and that would
        pass for a change of the archive.

        One that was moved before starts again from where it was calibrated. A label of which
        nothing was known there stays as it is.

        Raises:
            NotFitted: it is not known how common labels were there.
            InputError: the search for the frequencies did not come to rest.
        """
        if self.record is None:
            raise NotFitted(
                "How common the labels were where this was calibrated is not known: calibrate on "
                "labelled pictures first, then move the calibration to other pictures."
            )
        known = self.record.shown[:, 0]
        prior = (self.record.expected[:, 0] + 0.5) / (known + 1)
        found = label_shift(self.fitted.logits(raw), prior, pseudo_count=OLD_SHARES)
        if not found.converged:
            raise InputError(
                f"The frequencies of labels in these pictures did not come to rest in "
                f"{found.steps} steps. Give more pictures."
            )
        shift = np.where(known > 0, found.shift, 0.0)
        about = f"{self._unmoved}{MOVED}{len(np.asarray(raw))} others"
        return replace(self, about=about, shift=tuple(shift.tolist()))

    @property
    def _unmoved(self) -> str:
        return self.about.partition(MOVED)[0]


def check_level(run: Run, scores_of: str | None) -> None:
    """Refuse a calibrator that needs log-odds where there are none.

    Args:
        run: Says which calibrator.
        scores_of: What gives scores that are no log-odds; None where a link makes log-odds.

    Raises:
        ConfigError: the calibrator cannot make log-odds of raw scores.
    """
    name = run.calibrator.name
    if scores_of and not run.make("calibrator")().sets_level:
        raise ConfigError(
            f"{name} takes the level of log-odds as it is, and {scores_of} gives scores without "
            "one: take calibrator.name=platt."
        )


def calibrated(run: Run, raw: Array, targets: Array, known: Flags, *, how: str) -> Calibration:
    """Fit the run's calibrator, and see how it does on pictures that it has not seen.

    Args:
        run: Says which one.
        raw: Log-odds, or raw scores where there is no link, ``(n, c)``.
        targets: In [0, 1], ``(n, c)``.
        known: What is known of them.
        how: Of the pictures, in words: ``on``, or ``by 5 folds of``.

    Raises:
        InputError: no known label is present, or none is absent.
    """
    make, name = run.make("calibrator"), run.calibrator.name
    count = int(known.any(axis=1).sum())
    fitted = make().fit(raw, targets, known)
    record = _record(run, raw, targets, known) if count >= FEW else None
    return Calibration(name, fitted, f"{name} {how} {count} labelled pictures", record)


def _record(run: Run, raw: Array, targets: Array, known: Flags) -> TrackRecord | None:
    make = run.make("calibrator")
    try:
        honest = cross_fitted(make, raw, targets, known, folds=FOLDS, seed=run.seed)
    except InputError:  # all that is present lies in one fold, so the others teach nothing
        return None
    return track(honest, targets, known)


def restored(found: dict[str, Any] | None, record: TrackRecord | None = None) -> Calibration | None:
    """What ``state`` gave, read back.

    Raises:
        DataError: it is no state of a calibrator of this version.
    """
    if found is None:
        return None
    name, about, shift = found.get("calibrator"), found.get("about"), found.get("shift", [])
    labelled = found.get("labelled", True)
    if name not in list(CALIBRATORS) or "state" not in found or not isinstance(about, str):
        raise DataError(
            f"calibration.json must hold one of {', '.join(CALIBRATORS)} with its state and, in "
            f"words, on what it was fitted. Got {name!r} and {about!r}. Calibrate again, "
            "or install the version that saved it."
        )
    if not isinstance(shift, list) or not all(_is_log_odds(s) for s in shift):
        raise DataError(
            f"shift in calibration.json must be numbers in [-1000, 1000]. Got {shift}; "
            "calibrate again."
        )
    if not isinstance(labelled, bool):
        raise DataError(
            f"labelled in calibration.json must be true or false. Got {labelled!r}; calibrate "
            "again."
        )
    fitted = CALIBRATORS[name]().restore(found["state"])
    return Calibration(name, fitted, about, record, tuple(shift), labelled)


def shipped(run: Run, backbone: Backbone) -> Calibration | None:
    """The calibration that an embedded encoder ships with, for zero-shot in its usual domain."""
    if run.method.name != "zero_shot" or run.method.settings.keys() - {"templates"}:
        return None
    return restored(shared_calibration(backbone, **run.method.settings))


def _is_log_odds(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1000  # NaN is not
