"""Risk control: a threshold with a guarantee that assumes no model, only pictures of one kind."""

from math import ceil

import numpy as np

from surelabel.decisions.checked import check_share
from surelabel.decisions.evidence import ROUNDING, cases_needed, p_values
from surelabel.decisions.guarantee import Guarantee, not_promised, percent, promised
from surelabel.decisions.record import TrackRecord
from surelabel.records import Flags

WRONG = "the labels shown in a picture that shows any are wrong"
MISSED = "the labels that are in a picture are not shown"
GUESSED = 10  # pictures half as wrong as allowed, in the guess how many more it takes


def at_most_wrong(record: TrackRecord, *, level: float = 0.1, confidence: float = 0.9) -> Guarantee:
    """Show as much as keeps the share of wrong labels among the shown ones small.

    The risk is the share of wrong labels among those shown in a picture, as a mean over pictures
    that show any. Thresholds are tested one after the other, from 1 - level (where calibrated
    probabilities promise it) downwards; the last before the first failure is taken.

    Args:
        record: How the recognizer did on labelled pictures.
        level: Largest mean share of wrong labels, in (0, 1).
        confidence: Probability, over draws of the labelled pictures, that it is kept, in (0, 1).

    Returns:
        The lowest threshold that is safe, or that none is and about how many pictures it takes.

    Raises:
        ConfigError: a setting lies outside its range.

    Source:
        Angelopoulos, Bates, Candès, Jordan and Lei, Learn then Test: Calibrating Predictive
        Algorithms to Achieve Risk Control, arXiv:2110.01052: Hoeffding-Bentkus p-values and fixed
        sequence testing.

    Differs:
        Pictures that show nothing do not count, and each test knows how many are left: counted as
        free of error they would hide the errors of the others (MAPIE counts them as all wrong,
        which leaves no threshold where many pictures show nothing).

    Example:
        >>> from surelabel.decisions import track
        >>> found = at_most_wrong(track([[3.0, -3.0]] * 30, [[1, 0]] * 30))
        >>> round(found.threshold, 3), found.risk, found.pictures
        (0.052, 0.0, 30)
    """
    check_share("level", level)
    check_share("confidence", confidence)
    start = int(np.searchsorted(record.thresholds, 1 - level))
    downwards = np.arange(start, -1, -1)
    tests = p_values(record.wrong[downwards], record.tagged[downwards], level)
    safe = _leading(tests <= 1 - confidence)
    place = downwards[max(safe - 1, 0)]
    wrong, tagged = float(record.wrong[place]), int(record.tagged[place])
    if safe:
        threshold = float(record.thresholds[place])
        return promised(WRONG, threshold, wrong / tagged, level, confidence, tagged)
    typical = (wrong + GUESSED * level / 2) / (tagged + GUESSED)
    cases = cases_needed(typical, level, confidence)
    needed = cases and ceil(cases * record.pictures / max(tagged, 1))
    seen = percent(wrong / max(tagged, 1))
    why = f"of labels of probability {record.thresholds[start]:.3g} and more {seen} were wrong"
    return not_promised(WRONG, level, confidence, tagged, needed, why)


def at_most_missed(
    record: TrackRecord, *, level: float = 0.2, confidence: float = 0.9
) -> Guarantee:
    """Show as little as keeps the share of missed labels small.

    The risk is the share of the present labels of a picture that are not shown, as a mean over
    pictures in which a label is present. Thresholds are tested upwards from 0, where nothing is
    missed; the last before the first failure is taken.

    Args:
        record: How the recognizer did on labelled pictures.
        level: Largest mean share of missed labels, in (0, 1).
        confidence: Probability, over draws of the labelled pictures, that it is kept, in (0, 1).

    Returns:
        The highest threshold that is safe, or that none is and about how many pictures it takes.

    Raises:
        ConfigError: a setting lies outside its range.

    Source:
        Bates, Angelopoulos, Lei, Malik and Jordan, Distribution-Free, Risk-Controlling Prediction
        Sets, Journal of the ACM 2021, arXiv:2101.02703, with the Hoeffding-Bentkus bound.

    Differs:
        Pictures without a present label do not count; MAPIE refuses them.

    Example:
        >>> from surelabel.decisions import track
        >>> found = at_most_missed(track([[3.0, -3.0]] * 30, [[1, 0]] * 30))
        >>> round(found.threshold, 3), found.risk, found.pictures
        (0.953, 0.0, 30)
    """
    check_share("level", level)
    check_share("confidence", confidence)
    cases = np.full(record.missed.shape, float(record.with_labels))
    safe = p_values(record.missed, cases, level) <= 1 - confidence
    return _missing(record, safe, level, confidence, cases_needed(0.0, level, confidence))


def at_most_missed_on_average(record: TrackRecord, *, level: float = 0.2) -> Guarantee:
    """Show as little as keeps the share of missed labels small, for labelled pictures on average.

        (sum of missed shares + 1) / (n + 1) <= level

    As ``at_most_missed``, but kept as a mean over draws of the labelled pictures too, not with a
    stated confidence in these; it takes fewer of them and shows less.

    Args:
        record: How the recognizer did on labelled pictures.
        level: Largest mean share of missed labels, in (0, 1).

    Returns:
        The highest threshold that is safe, or that none is and how many pictures it takes.

    Raises:
        ConfigError: ``level`` lies outside its range.

    Source:
        Angelopoulos, Bates, Fisch, Lei and Schuster, Conformal Risk Control, ICLR 2024,
        arXiv:2208.02814.

    Differs:
        Pictures without a present label do not count; MAPIE refuses them, and asks for less than
        the level where the paper has at most.

    Example:
        >>> from surelabel.decisions import track
        >>> found = at_most_missed_on_average(track([[3.0, -3.0]] * 30, [[1, 0]] * 30))
        >>> round(found.threshold, 3), found.risk, found.pictures
        (0.953, 0.0, 30)
    """
    check_share("level", level)
    safe = (record.missed + 1) / (record.with_labels + 1) <= level
    return _missing(record, safe, level, None, ceil(1 / level - 1 - ROUNDING))


def _missing(
    record: TrackRecord, safe: Flags, level: float, confidence: float | None, needed: int | None
) -> Guarantee:
    """The highest threshold up to which all are safe; ``needed`` with labels when none is."""
    pictures, count = record.with_labels, _leading(safe)
    if count:
        threshold, missed = float(record.thresholds[count - 1]), float(record.missed[count - 1])
        return promised(MISSED, threshold, missed / pictures, level, confidence, pictures)
    needed = needed and ceil(needed * record.pictures / max(pictures, 1))
    return not_promised(MISSED, level, confidence, pictures, needed, "")


def _leading(passes: Flags) -> int:
    """How many pass before the first that does not."""
    return int(passes.size if passes.all() else passes.argmin())
