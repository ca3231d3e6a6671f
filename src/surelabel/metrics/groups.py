"""Metrics of groups of classes: frequent and rare ones, old and new ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError, InputError
from surelabel.metrics.equal_mass import equal_mass
from surelabel.records import checked_targets
from surelabel.shapes import check_shapes

Columns = npt.NDArray[np.intp]


@dataclass(frozen=True)
class BaseAndNew:
    """One metric of the classes that were learnt and of those that were not.

    Attributes:
        base: Of the classes that had labelled pictures.
        new: Of the others.
        harmonic: 2 · base · new / (base + new): for accuracies, where one that is bad must show.
            NaN where a part is negative.
        arithmetic: Their plain mean: for errors. There the harmonic mean would favour the better.
    """

    base: float
    new: float
    harmonic: float
    arithmetic: float


def groups_by_frequency(
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    head: int = 100,
    tail: int = 20,
) -> dict[str, Columns]:
    """Head, medium and tail: classes by how often they are present in the training data.

    Args:
        targets: Of the training data: in [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        head: Present at least so often: head.
        tail: Present less often than this: tail; what is between is medium.

    Returns:
        ``head``, ``medium`` and ``tail``, each with its columns; any of them may be empty.

    Raises:
        InputError: shapes differ, or a target is outside [0, 1].
        ConfigError: ``tail`` is more than ``head``.

    Source:
        Liu et al., Large-Scale Long-Tailed Recognition in an Open World, CVPR 2019,
        arXiv:1904.05160; for several labels: Wu et al., Distribution-Balanced Loss for Multi-Label
        Classification in Long-Tailed Datasets, ECCV 2020, arXiv:2007.09654.

    Example:
        >>> groups = groups_by_frequency([[1, 0, 1], [1, 0, 0], [1, 1, 1]], head=3, tail=2)
        >>> {name: columns.tolist() for name, columns in groups.items()}
        {'head': [0], 'medium': [2], 'tail': [1]}
    """
    if tail > head:
        raise ConfigError(f"tail must not be more than head. Got tail={tail} and head={head}.")
    times = checked_targets(targets, known)[0].sum(axis=0)
    return {
        "head": np.flatnonzero(times >= head),
        "medium": np.flatnonzero((times < head) & (times >= tail)),
        "tail": np.flatnonzero(times < tail),
    }


def groups_of_thirds(
    targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> dict[str, Columns]:
    """Head, medium and tail of about as many classes each, whatever the size of the data.

    Args:
        targets: As for ``groups_by_frequency``.
        known: As for ``groups_by_frequency``.

    Returns:
        As ``groups_by_frequency``; classes present equally often stay together.

    Raises:
        InputError: shapes differ, or a target is outside [0, 1].

    Source:
        None; ours: thirds of the ranks of the counts.

    Example:
        >>> groups = groups_of_thirds([[1, 0, 1], [1, 0, 0], [1, 1, 1]])
        >>> {name: columns.tolist() for name, columns in groups.items()}
        {'head': [0], 'medium': [2], 'tail': [1]}
    """
    third = equal_mass(checked_targets(targets, known)[0].sum(axis=0), 3)
    return {
        name: np.flatnonzero(third == t) for t, name in ((2, "head"), (1, "medium"), (0, "tail"))
    }


def grouped(
    metric: Callable[..., float],
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    groups: Mapping[str, Sequence[int] | Columns],
) -> dict[str, float]:
    """A metric of each group of classes by itself, its decisions pooled.

    Args:
        metric: An entry of ``METRICS``, its settings fixed.
        probabilities: What the metric takes, ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; None for all of them.
        groups: Name → columns; a class may stand in several.

    Returns:
        Name → value; NaN for an empty group.

    Raises:
        InputError: a column does not exist, shapes differ, or what the metric raises.

    Source:
        None; ours: the metric of some of the columns.

    Example:
        >>> from surelabel.metrics import brier
        >>> values = grouped(brier, [[0.5, 1.0]], [[1, 1]], None, {"old": [0], "new": [1]})
        >>> values
        {'old': 0.25, 'new': 0.0}
    """
    p = np.asarray(probabilities)
    y, known = checked_targets(targets, known)
    check_shapes(probabilities=(p, "n c"), targets=(y, "n c"))
    values = {}
    for name, columns in groups.items():
        chosen = _checked(name, columns, y.shape[1])
        values[name] = float("nan")
        if chosen.size:
            values[name] = metric(p[:, chosen], y[:, chosen], known[:, chosen])
    return values


def base_and_new(
    metric: Callable[..., float],
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    new: Sequence[int] | Columns,
) -> BaseAndNew:
    """A metric of the classes that were learnt, of the new ones, and two means of the two.

    Args:
        metric: As for ``grouped``.
        probabilities: As for ``grouped``.
        targets: As for ``grouped``.
        known: As for ``grouped``.
        new: Columns of the classes without labelled pictures; all others are base.

    Returns:
        Both values and both means, NaN where a group is empty or undefined.

    Raises:
        InputError: as for ``grouped``.

    Source:
        Xian, Schiele and Akata, Zero-Shot Learning: The Good, the Bad and the Ugly, CVPR 2017,
        arXiv:1703.04394, for the harmonic mean; the arithmetic one for errors is ours.

    Example:
        >>> from surelabel.metrics import accuracy
        >>> base_and_new(accuracy, [[0.9, 0.9], [0.1, 0.9]], [[1, 1], [0, 0]], new=[1])
        BaseAndNew(base=1.0, new=0.5, harmonic=0.6666666666666666, arithmetic=0.75)
    """
    y, known = checked_targets(targets, known)
    fresh = _checked("new", new, y.shape[1])
    groups = {"base": np.setdiff1d(np.arange(y.shape[1]), fresh), "new": fresh}
    parts = grouped(metric, probabilities, y, known, groups)
    base, other = parts["base"], parts["new"]
    return BaseAndNew(base, other, _harmonic(base, other), (base + other) / 2)


def _checked(name: str, columns: Sequence[int] | Columns, classes: int) -> Columns:
    """Each column once, in order."""
    given = np.asarray(columns)
    chosen = np.unique(given).astype(np.intp)
    if not chosen.size:
        return chosen
    if given.dtype.kind not in "iu" or chosen[0] < 0 or chosen[-1] >= classes:
        raise InputError(
            f"columns of {name} must be whole numbers in 0 … {classes - 1}. Got {given.tolist()}; "
            f"a mask becomes columns by numpy.flatnonzero."
        )
    return chosen


def _harmonic(one: float, other: float) -> float:
    if not (one >= 0 and other >= 0):
        return float("nan")
    return 2 * one * other / (one + other) if one + other else 0.0
