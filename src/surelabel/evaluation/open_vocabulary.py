"""Names that nothing was learnt of: how well they are found, and how honest their probabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.evaluation.protocol import Protocol, protocol
from surelabel.metrics.brier import brier_skill
from surelabel.metrics.calibration_error import ece, ece_of_candidates
from surelabel.metrics.checked import checked_scores
from surelabel.metrics.groups import grouped
from surelabel.metrics.log_loss import log_loss
from surelabel.metrics.noise_floor import noise_floor
from surelabel.metrics.ranking import mean_average_precision
from surelabel.records import Flags

Columns = npt.NDArray[np.intp]
HONESTY: dict[str, Callable[..., float]] = {
    "brier_skill": brier_skill,
    "log_loss": log_loss,
    "ece": ece,
    "ece_of_candidates": ece_of_candidates,
}
WITH_FLOOR = ("ece", "ece_of_candidates")


@dataclass(frozen=True)
class OpenVocabulary:
    """Seen and unseen names, ranked apart and together, and their probabilities side by side.

    Attributes:
        zsl: Unseen names alone ("zero-shot"), in pictures that have one.
        zsl_of_all_pictures: The same with pictures that have none: recall is the same, precision
            lower. Papers are of both camps, so that only recall compares between them.
        gzsl: All names ("generalised zero-shot"), in all pictures.
        sides: Metric → its value for ``seen`` and for ``unseen`` names, in all pictures; those of
            probabilities only where there are any.
        floor: Metric → what probabilities that are right would show by chance, on both sides.
    """

    zsl: Protocol
    zsl_of_all_pictures: Protocol
    gzsl: Protocol
    sides: Mapping[str, Mapping[str, float]]
    floor: Mapping[str, Mapping[str, float]]


def open_vocabulary(
    scores: npt.ArrayLike,
    targets: npt.ArrayLike,
    seen_columns: Sequence[int] | Columns,
    known: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
) -> OpenVocabulary:
    """Judge a recognizer that was fitted on some of the names and is asked for all.

    Args:
        scores: Finite numbers, higher means more likely, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        seen_columns: Columns of the names that training had labels of; all others are unseen.
        known: True where the target is known, ``(n, c)``; only such labels are ranked and judged.
        probabilities: In [0, 1], ``(n, c)``; None where nothing gives any.

    Returns:
        Zero-shot and generalised zero-shot results beside what a perfect ranking reaches, and the
        calibration of seen and unseen names. What is undefined is NaN.

    Raises:
        InputError: shapes differ, a value is not what it must be, a column does not exist, or
            there is no seen or no unseen name.

    Source:
        Precision, recall and F1 at 3 and 5 of zero-shot and generalised zero-shot labels: Huynh
        and Elhamifar, A Shared Multi-Attention Framework for Multi-Label Zero-Shot Learning, CVPR
        2020, as in Recover and Match, CVPR 2025, arXiv:2503.15337, section 5.1. Calibration of
        unseen names: ours.

    Differs:
        Labels that tie for the last places share them equally. Average precision is given with
        classes without positives as 0, as published, and without them. Zero-shot results leave
        pictures without an unseen label out; results with them stand beside.

    Example:
        >>> scores = [[0.9, 0.2, 0.8, 0.1, 0.3], [0.7, 0.6, 0.5, 0.4, 0.3]]
        >>> found = open_vocabulary(scores, [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0]], [0, 1])
        >>> found.zsl.pictures, found.zsl.found.best[3].precision, found.zsl.empty
        (1, 0.3333333333333333, 2)
        >>> found.gzsl.found.best[3], found.gzsl.ceiling.best[3].f1
        (AtK(precision=0.5, recall=1.0, f1=0.6666666666666666), 0.6666666666666666)
    """
    ranked, present, given = checked_scores(scores, targets, known)
    seen, unseen = _divided(seen_columns, ranked.shape[1])
    every = np.arange(ranked.shape[1])
    groups = {"seen": seen, "unseen": unseen}

    def both(metric: Callable[..., float], values: npt.ArrayLike) -> dict[str, float]:
        return grouped(metric, values, present, given, groups)

    sides = {"mean_average_precision": both(mean_average_precision, ranked)}
    floor = {}
    if probabilities is not None:
        sides |= {name: both(metric, probabilities) for name, metric in HONESTY.items()}
        floor = {name: both(_by_chance(HONESTY[name]), probabilities) for name in WITH_FLOOR}
    labels = ranked, present, given
    return OpenVocabulary(
        zsl=protocol(*labels, rows=_any(present[:, unseen]), columns=unseen),
        zsl_of_all_pictures=protocol(*labels, rows=_any(given[:, unseen]), columns=unseen),
        gzsl=protocol(*labels, rows=_any(given), columns=every),
        sides=sides,
        floor=floor,
    )


def _any(flags: Flags) -> Columns:
    """Rows with at least one."""
    return np.flatnonzero(flags.any(axis=1))


def _divided(seen_columns: Sequence[int] | Columns, classes: int) -> tuple[Columns, Columns]:
    """Columns of seen and of unseen names, each in order."""
    given = np.asarray(seen_columns)
    whole = given.ndim == 1 and given.dtype.kind in "iu" and given.size > 0
    if not whole or given.min() < 0 or given.max() >= classes:
        raise InputError(
            f"seen_columns must be whole numbers in 0 … {classes - 1}, one or more. Got "
            f"{given.tolist()}; a mask becomes columns by numpy.flatnonzero."
        )
    seen = np.unique(given).astype(np.intp)
    unseen = np.setdiff1d(np.arange(classes), seen)
    if not unseen.size:
        raise InputError(
            f"One name or more must be unseen. Got all {classes} columns as seen; "
            "surelabel.evaluation.judge is for names that are all of one kind."
        )
    return seen, unseen


def _by_chance(metric: Callable[..., float]) -> Callable[..., float]:
    """What the metric would say if the truth were drawn from the probabilities."""
    return lambda probabilities, _, known: noise_floor(metric, probabilities, known)
