"""Operating points: from a stated goal to one threshold a label.

Probabilities stay what they are; a threshold is a decision about them.
"""

import numpy as np

from surelabel.decisions.checked import check_share
from surelabel.decisions.record import TrackRecord
from surelabel.decisions.thresholds import Thresholds, chosen, curves
from surelabel.errors import ConfigError


def f1(record: TrackRecord, *, shrinkage: float = 10.0) -> Thresholds:
    """Show each label from where its F1, the harmonic mean of precision and recall, is best.

    Args:
        record: How the recognizer did on labelled pictures.
        shrinkage: Cases as its probabilities promise that each label is mixed with, >= 0.

    Returns:
        The thresholds; of two as good the higher one. Not reached without shrinkage: labels that
        are nowhere known to be present.

    Raises:
        ConfigError: ``shrinkage`` is negative or not finite.

    Source:
        Lipton, Elkan and Narayanaswamy, Optimal Thresholding of Classifiers to Maximize F1
        Measure, ECML PKDD 2014, arXiv:1402.1892: of calibrated probabilities the best threshold
        is half the best F1.

    Differs:
        It is looked up on the track record, so probabilities may be a little off, and mixed with
        what they promise: on its own, a label with two present cases would follow these two.

    Example:
        >>> from surelabel.decisions import track
        >>> record = track([[-1.0], [0.0], [1.0], [2.0]], [[0], [0], [1], [1]])
        >>> found = f1(record)
        >>> found.values.round(3), found.precision.round(3), found.recall.round(3)
        (array([0.731]), array([0.811]), array([0.731]))
    """
    precision, recall = curves(record, shrinkage)
    both = precision + recall
    score = np.divide(
        2 * precision * recall, both, out=np.full(both.shape, -1.0), where=both > 0
    )  # NaN is not above 0
    last_best = score.shape[1] - 1 - np.argmax(score[:, ::-1], axis=1)
    return chosen(record, precision, recall, last_best, (score > 0).any(axis=1))


def precision(record: TrackRecord, *, at_least: float = 0.9, shrinkage: float = 10.0) -> Thresholds:
    """Show as much of each label as keeps the expected precision at the goal.

    Args:
        record: How the recognizer did on labelled pictures.
        at_least: Share of right ones among the shown, in (0, 1).
        shrinkage: Cases as its probabilities promise that each label is mixed with, >= 0.

    Returns:
        The lowest threshold of each label with this precision. It is an estimate; what holds with
        a stated confidence is a guarantee, ``at_most_wrong``. Not reached: labels of which even
        the likeliest were too often wrong, or when nothing is ever likely enough.

    Raises:
        ConfigError: a setting lies outside its range.

    Source:
        none; ours: a look-up on the track record, mixed with what the probabilities promise.

    Example:
        >>> from surelabel.decisions import track
        >>> record = track([[-1.0], [0.0], [1.0], [2.0]], [[0], [1], [0], [1]])
        >>> precision(record, at_least=0.6).values.round(3)
        array([0.426])
    """
    check_share("at_least", at_least)
    precisions, recalls = curves(record, shrinkage)
    enough = precisions >= at_least  # False where NaN
    return chosen(record, precisions, recalls, enough.argmax(axis=1), enough.max(axis=1))


def recall(record: TrackRecord, *, at_least: float = 0.8, shrinkage: float = 10.0) -> Thresholds:
    """Show as little of each label as keeps the expected recall at the goal.

    Args:
        record: How the recognizer did on labelled pictures.
        at_least: Share of the present ones that are shown, in (0, 1).
        shrinkage: Cases as its probabilities promise that each label is mixed with, >= 0.

    Returns:
        The highest threshold of each label with this recall; 0, where all is shown, when a lower
        one than 0.0003 were needed. It is an estimate; what holds with a stated confidence is a
        guarantee, ``at_most_missed``. Not reached without shrinkage: labels that are nowhere
        known to be present.

    Raises:
        ConfigError: a setting lies outside its range.

    Source:
        none; ours: a look-up on the track record, mixed with what the probabilities promise.

    Example:
        >>> from surelabel.decisions import track
        >>> record = track([[-1.0], [0.0], [1.0], [2.0]], [[0], [1], [0], [1]])
        >>> recall(record, at_least=0.9).values
        array([0.5])
    """
    check_share("at_least", at_least)
    precisions, recalls = curves(record, shrinkage)
    enough = recalls >= at_least
    last = enough.shape[1] - 1 - np.argmax(enough[:, ::-1], axis=1)
    return chosen(record, precisions, recalls, last, enough.max(axis=1))


def cost(record: TrackRecord, *, of_miss: float = 5.0, shrinkage: float = 10.0) -> Thresholds:
    """Show what costs less shown than hidden, when a miss costs so many false tags.

        show where of_miss · p >= 1 - p,   that is, p >= 1 / (1 + of_miss)

    Args:
        record: How the recognizer did on labelled pictures; the threshold does not depend on it,
            what is expected of it does, to a tenth of log-odds.
        of_miss: What a label that is there and not shown costs, where one that is shown and not
            there costs 1; above 0.
        shrinkage: Cases as its probabilities promise that each label is mixed with, >= 0.

    Returns:
        The same threshold for all labels, always reached.

    Raises:
        ConfigError: a setting lies outside its range.

    Source:
        Elkan, The Foundations of Cost-Sensitive Learning, IJCAI 2001.

    Example:
        >>> from surelabel.decisions import track
        >>> cost(track([[0.0, 1.0]], [[0, 1]]), of_miss=4.0).values
        array([0.2, 0.2])
    """
    if not 0 < of_miss < np.inf:
        raise ConfigError(f"of_miss must be a finite cost above 0. Got {of_miss}.")
    precisions, recalls = curves(record, shrinkage)
    value = 1 / (1 + of_miss)
    place = np.searchsorted(record.thresholds, value, side="right") - 1
    labels = len(record.support)
    found = chosen(record, precisions, recalls, np.full(labels, place), np.ones(labels, dtype=bool))
    return Thresholds(
        np.full(labels, value), found.precision, found.recall, found.reached, found.support
    )


def as_many(record: TrackRecord, *, shrinkage: float = 10.0) -> Thresholds:
    """Show as many labels as there are: one threshold for all, so that what is missed equals what
    is wrongly shown.

    Of a record that probabilities promise, without labels, it is as many as can be expected.

    Args:
        record: How the recognizer did, or what its probabilities promise.
        shrinkage: Cases as its probabilities promise that what is expected of each label is mixed
            with, >= 0; the threshold does not depend on it.

    Returns:
        The same threshold for all labels, the one that shows most nearly as many as are present,
        of two as near the higher. Not reached where no label is known to be present.

    Raises:
        ConfigError: ``shrinkage`` is negative or not finite.

    Source:
        none; ours: precision and recall of all decisions together break even there.

    Example:
        >>> from surelabel.decisions import track
        >>> record = track([[-1.0], [0.0], [1.0], [2.0]], [[0], [1], [0], [1]])
        >>> as_many(record).values.round(3)
        array([0.731])
    """
    precisions, recalls = curves(record, shrinkage)
    there, shown = record.support.sum(), record.shown.sum(axis=0)
    nearest = shown.size - 1 - np.argmin(np.abs(shown - there)[::-1])
    labels = len(record.support)
    index, reached = np.full(labels, nearest), np.full(labels, there > 0)
    return chosen(record, precisions, recalls, index, reached)
