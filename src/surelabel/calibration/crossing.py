"""Honest calibrated logits of the very pictures that a calibrator is fitted on."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from surelabel.calibration.checked import checked_logits
from surelabel.calibration.protocol import Calibrator
from surelabel.errors import ConfigError, InputError
from surelabel.records import Array, Flags, checked_targets
from surelabel.shapes import check_shapes


def cross_fitted(
    make: Callable[[], Calibrator],
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
) -> Array:
    """Calibrated logits of every picture by a calibrator that has not seen its labels.

    The pictures are dealt into folds, rare labels spread evenly; each fold is calibrated by a
    calibrator fitted on all the others. A metric of the result is an honest estimate for the
    calibrator fitted on all pictures, and a little pessimistic.

    Args:
        make: Gives a calibrator to be fitted: an entry of ``CALIBRATORS``, its settings fixed.
        logits: Log-odds or raw scores, ``(n, c)``, finite.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        folds: Parts, >= 2 and at most as many as pictures with a known label.
        seed: Of the order in which pictures are dealt.

    Returns:
        Calibrated log-odds in [-40, 40], ``(n, c)``; also of pictures of which nothing is known.

    Raises:
        InputError: a value is not what it must be, there are fewer pictures with known labels
            than folds, or without one fold no decision is present, or none absent.
        ConfigError: ``folds`` is not a whole number of at least 2.

    Source:
        Stacked or cross-validated calibration: Platt, Probabilistic Outputs for Support Vector
        Machines, 1999; folds as in Sechidis, Tsoumakas and Vlahavas, On the
        Stratification of Multi-label Data, ECML PKDD 2011.

    Differs:
        The rarest label is dealt first, and its pictures go where it is rarest, but labels are
        sorted once and not after every picture.

    Example:
        >>> from surelabel.calibration.platt import Platt
        >>> x, y = [[-3.0], [-1.0], [1.0], [3.0]], [[0], [1], [0], [1]]
        >>> cross_fitted(Platt, x, y, folds=2).round(2)
        array([[-0.  ],
               [-0.23],
               [ 0.23],
               [ 0.  ]])
    """
    x = checked_logits(logits)
    y, seen = checked_targets(targets, known)
    check_shapes(logits=(x, "n c"), targets=(y, "n c"))
    fold = dealt(y, seen, folds, np.random.default_rng(seed))
    found = np.empty_like(x)
    for part in range(folds):
        inside = fold == part
        fitted = make().fit(x[~inside], y[~inside], seen[~inside])
        found[inside] = fitted.logits(x[inside])
    return found


def dealt(y: Array, seen: Flags, folds: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Deal pictures into folds so that rare labels spread evenly; the fold of each, ``(n,)``.

    Raises:
        InputError: there are fewer pictures with a known label than folds.
        ConfigError: ``folds`` is not a whole number of at least 2.
    """
    if not float(folds).is_integer() or folds < 2:
        raise ConfigError(f"folds must be a whole number of at least 2. Got {folds}.")
    useful = seen.sum(axis=1) > 0
    if useful.sum() < folds:
        raise InputError(
            f"folds must be at most the number of pictures with a known label. Got {folds} folds "
            f"and {useful.sum()} such pictures; take fewer folds or label more pictures."
        )
    present = y > 0.5
    labels = np.argsort(present.sum(axis=0), kind="stable")  # from rare to common
    rarest = np.argmax(np.column_stack([present[:, labels], np.ones(len(y), dtype=bool)]), axis=1)
    order = rng.permutation(len(y))
    order = order[np.lexsort((rarest[order], ~useful[order]))]
    fold, sizes, held = np.full(len(y), -1), np.zeros(folds), np.zeros((folds, len(labels)))
    for row in order:
        none = rarest[row] == len(labels)
        same = sizes if none else held[:, labels[rarest[row]]]
        best = np.lexsort((sizes, same))[0]  # an empty fold comes first for every label
        fold[row] = best
        sizes[best] += 1
        held[best] += present[row]
    return fold
