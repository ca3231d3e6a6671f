"""How many labels a picture gets, and how many it should."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.checked import checked_probabilities
from surelabel.records import Array, Flags

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelCounts:
    """Labels of each picture, among those whose truth is known where there is any.

    Attributes:
        expected: Sum of the probabilities, ``(n,)``.
        shown: Labels at the threshold or above it, ``(n,)``.
        present: Labels that are there, ``(n,)``; None without a truth.
    """

    expected: Array
    shown: Counts
    present: Array | None

    @property
    def means(self) -> dict[str, float]:
        """Labels per picture: ``expected``, ``shown`` and, where it is known, ``present``."""
        every = {"expected": self.expected, "shown": self.shown, "present": self.present}
        return {name: float(np.mean(of)) for name, of in every.items() if of is not None}

    @property
    def excess(self) -> float:
        """Labels shown too many, as a share of those present; -0.2 is a fifth too few.

        NaN where nothing is present, or no truth is known.
        """
        if self.present is None or not self.present.sum():
            return float("nan")
        return float(self.shown.sum() / self.present.sum() - 1)

    @property
    def histograms(self) -> dict[str, Counts]:
        """Pictures with 0, 1, 2 … labels ``shown`` and ``present``, all of one length ``(k,)``."""
        every = {"shown": self.shown, "present": self.present}
        whole = {k: np.rint(of).astype(np.int64) for k, of in every.items() if of is not None}
        most = 1 + max(int(of.max()) for of in whole.values())
        return {name: np.bincount(of, minlength=most) for name, of in whole.items()}


def label_counts(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike | None = None,
    known: npt.ArrayLike | None = None,
    *,
    threshold: float | npt.ArrayLike = 0.5,
) -> LabelCounts:
    """Count the labels that each picture is shown with, and those that it has.

    Called with what two recognizers say, before and after pictures were learnt from, it says what
    became of the number of labels.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``; None where no truth is
            known.
        known: True where the target is known, ``(n, c)``; other labels are not counted at all.
        threshold: Least probability of a label that is shown: one, or one a label ``(c,)``.

    Raises:
        InputError: shapes differ, there is no picture, or something is NaN or outside [0, 1].
        ConfigError: a threshold is outside [0, 1].

    Example:
        >>> counts = label_counts([[0.9, 0.6, 0.1], [0.7, 0.2, 0.1]], [[1, 1, 0], [1, 1, 1]])
        >>> counts.means
        {'expected': 1.3, 'shown': 1.5, 'present': 2.5}
        >>> round(counts.excess, 2), counts.histograms["shown"].tolist()
        (-0.4, [0, 1, 1, 0])
    """
    p, wanted, given = decisions(probabilities, targets, known)
    shown = at_least(p, threshold) & given
    return LabelCounts(
        expected=(p * given).sum(axis=1),
        shown=shown.sum(axis=1),
        present=None if wanted is None else wanted.sum(axis=1),
    )


def decisions(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike | None, known: npt.ArrayLike | None
) -> tuple[Array, Array | None, Flags]:
    """Probabilities, targets (0 where unknown) or None, and what counts; each ``(n, c)``.

    Raises:
        InputError: shapes differ, there is no picture, or something is NaN or outside [0, 1].
    """
    truth = np.zeros(np.shape(probabilities)) if targets is None else targets
    p, wanted, given = checked_probabilities(probabilities, truth, known)
    if not len(p):
        raise InputError("probabilities must hold one picture or more. Got none.")
    return p, None if targets is None else wanted, given


def at_least(probabilities: Array, threshold: float | npt.ArrayLike) -> Flags:
    """Which labels are shown, ``(n, c)``.

    Raises:
        ConfigError: a threshold is outside [0, 1], or there are not as many as labels.
    """
    limits = np.asarray(threshold, dtype=np.float64)
    if limits.shape not in ((), probabilities.shape[1:]):
        raise ConfigError(
            f"threshold must be one number, or one for each of {probabilities.shape[1]} labels. "
            f"Got {limits.shape}."
        )
    if not ((limits >= 0) & (limits <= 1)).all():
        raise ConfigError(f"threshold must be a probability in [0, 1]. Got {threshold!r}.")
    shown: Flags = probabilities >= limits
    return shown
