"""One threshold a label, and what to expect of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.decisions.record import TrackRecord
from surelabel.errors import ConfigError, InputError
from surelabel.records import Array, Flags


@dataclass(frozen=True)
class Thresholds:
    """From which probability on each label is shown.

    Attributes:
        values: Probabilities in [0, 1], ``(c,)``. At 1 the label is never shown.
        precision: Expected share of right ones among the shown, ``(c,)``; NaN where nothing is.
        recall: Expected share of the present ones that are shown, ``(c,)``; NaN where unknown.
        reached: Whether the goal can be met, ``(c,)``. Where it cannot, the threshold is 1.
        support: Known present labels that it rests on, ``(c,)``.
    """

    values: Array
    precision: Array
    recall: Array
    reached: Flags
    support: Array

    def shown(self, probabilities: npt.ArrayLike) -> Flags:
        """Which labels of which pictures to show, of probabilities ``(n, c)``.

        Raises:
            InputError: there is not one column a threshold.
        """
        p = np.asarray(probabilities, dtype=np.float64)
        if p.ndim != 2 or p.shape[1] != self.values.size:
            raise InputError(
                f"probabilities must have one column a label, {self.values.size}. "
                f"Got shape {p.shape}; tag with the labels that the record is of."
            )
        flags: Flags = (p >= self.values) & (self.values < 1)
        return flags


def curves(record: TrackRecord, shrinkage: float) -> tuple[Array, Array]:
    """Expected precision and recall of each label at each threshold, ``(c, g)``; NaN: undefined.

        precision = (right + lift · t + shrinkage · lift · (sum of p + t) / (shown + 1))
                    / (shown + 1 + shrinkage)
        recall    = (right + shrinkage · share of the sum of p) / (support + shrinkage)

    What was counted is mixed with what the probabilities of the label themselves promise. One
    more, as likely as the threshold t, counts as shown: it stands for the next to be shown, so
    that a gap between few pictures is not taken for safe. Lift is how much of the promise all
    labels together keep at the threshold, at most 1.

    Raises:
        ConfigError: ``shrinkage`` is negative or not finite.
    """
    if not 0 <= shrinkage < np.inf:
        raise ConfigError(f"shrinkage must be a finite number of at least 0. Got {shrinkage}.")
    all_right, all_promised = record.present.sum(axis=0), record.expected.sum(axis=0)
    lift = np.minimum(_share(all_right, all_promised), 1)
    promised = lift * (record.expected + record.thresholds) / (record.shown + 1)
    right = record.present + lift * record.thresholds + shrinkage * promised
    precision = right / (record.shown + 1 + shrinkage)
    precision[:, -1] = np.nan  # nothing is shown
    kept = _share(record.expected, record.expected[:, :1])
    kept = np.where(np.isnan(kept), _share(all_promised, all_promised[:1]), kept)
    recall = _share(record.present + shrinkage * kept, record.support[:, None] + shrinkage)
    return precision, recall


def chosen(
    record: TrackRecord,
    precision: Array,
    recall: Array,
    index: npt.NDArray[np.intp],
    reached: Flags,
) -> Thresholds:
    """The thresholds of these indices, and 1 where the goal is not reached."""
    index = np.where(reached, index, record.thresholds.size - 1)
    place = index[:, None]
    return Thresholds(
        values=record.thresholds[index],
        precision=np.take_along_axis(precision, place, axis=1)[:, 0],
        recall=np.take_along_axis(recall, place, axis=1)[:, 0],
        reached=reached,
        support=record.support,
    )


def _share(part: Array, whole: Array) -> Array:
    """``part / whole``, NaN where there is no whole."""
    nothing = np.full(part.shape, np.nan)
    share: Array = np.divide(part, whole, out=nothing, where=np.broadcast_to(whole > 0, part.shape))
    return share
