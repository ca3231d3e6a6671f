"""Compute metrics of groups of classes: frequent and rare classes, base and new classes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import ColumnIndices, validate_target_arrays
from surelabel.errors import ConfigError, InputError
from surelabel.metrics.binning.equal_mass_bins import assign_equal_mass_bins
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class BaseAndNew:
    """Values of one metric for base classes (with labelled training images) and for new classes.

    Attributes:
        base: Metric of the base classes.
        new: Metric of the new classes.
    """

    base: float
    new: float

    @property
    def harmonic_mean(self) -> float:
        """Return the harmonic mean 2 · base · new / (base + new).

        The harmonic mean is NaN if ``base`` or ``new`` is negative or NaN, and 0 if both are 0. Use
        it for metrics where a high value is best, because it is closer to the smaller value. For
        errors, the smaller value is that of the better group, so use ``arithmetic_mean``.
        """
        if not (self.base >= 0 and self.new >= 0):
            return float("nan")
        total = self.base + self.new
        return 2 * self.base * self.new / total if total else 0.0

    @property
    def arithmetic_mean(self) -> float:
        """Return the arithmetic mean of ``base`` and ``new``, for metrics that are errors."""
        return (self.base + self.new) / 2


def class_frequency_groups(
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    head: int = 100,
    tail: int = 20,
) -> dict[str, ColumnIndices]:
    """Group the classes into head, medium and tail by their number of positives in training.

    Args:
        targets: Training targets in [0, 1] of n images and c classes, 1 = positive, 0 = negative,
            NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        head: Smallest number of positives of a head class. Graded targets are summed.
        tail: Number of positives below which a class is a tail class.

    Returns:
        Column indices of the groups ``head``, ``medium`` and ``tail``. A group may be empty. The
        group ``medium`` contains the classes that are neither in ``head`` nor in ``tail``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, if a known target is outside
            [0, 1], or if ``known`` is not Boolean.
        ConfigError: If ``tail`` is greater than ``head``.

    Source:
        Liu et al., Large-Scale Long-Tailed Recognition in an Open World, CVPR 2019,
        arXiv:1904.05160; for several labels: Wu et al., Distribution-Balanced Loss for Multi-Label
        Classification in Long-Tailed Datasets, ECCV 2020, arXiv:2007.09654.

    Example:
        >>> groups = class_frequency_groups([[1, 0, 1], [1, 0, 0], [1, 1, 1]], head=3, tail=2)
        >>> {name: columns.tolist() for name, columns in groups.items()}
        {'head': [0], 'medium': [2], 'tail': [1]}
    """
    if tail > head:
        raise ConfigError(
            f"tail must not be greater than head; got tail={tail} and head={head}. Lower tail or "
            f"raise head."
        )
    n_positives = validate_target_arrays(targets, known)[0].sum(axis=0)
    return {
        "head": np.flatnonzero(n_positives >= head),
        "medium": np.flatnonzero((n_positives < head) & (n_positives >= tail)),
        "tail": np.flatnonzero(n_positives < tail),
    }


def class_frequency_thirds(
    targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> dict[str, ColumnIndices]:
    """Group the classes into head, medium and tail of about equal size by number of positives.

    Args:
        targets: Training targets in [0, 1] of n images and c classes, 1 = positive, 0 = negative,
            NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Column indices of the groups ``head``, ``medium`` and ``tail``. Classes with equal numbers
        of positives share a group.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, if a known target is outside
            [0, 1], or if ``known`` is not Boolean.

    Source:
        None; ours: the classes are sorted by number of positives and split into thirds.

    Example:
        >>> groups = class_frequency_thirds([[1, 0, 1], [1, 0, 0], [1, 1, 1]])
        >>> {name: columns.tolist() for name, columns in groups.items()}
        {'head': [0], 'medium': [2], 'tail': [1]}
    """
    third = assign_equal_mass_bins(validate_target_arrays(targets, known)[0].sum(axis=0), 3)
    return {
        name: np.flatnonzero(third == number)
        for number, name in ((2, "head"), (1, "medium"), (0, "tail"))
    }


def metric_per_class_group(
    metric: Callable[..., float],
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    groups: Mapping[str, Sequence[int] | ColumnIndices],
) -> dict[str, float]:
    """Compute a metric on the columns of each group of classes.

    Args:
        metric: Metric of the table ``POOLED``, or a function with the same arguments.
        probabilities: Probabilities or scores of n images and c classes, as the metric requires,
            ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        groups: Column indices of each group, with the group name as key. A class may belong to
            several groups.

    Returns:
        Dictionary from the name of each group to the metric of the group. The value
        of an empty group is NaN.

    Raises:
        InputError: If a column does not exist, the shapes differ, or the metric raises an
            InputError.

    Source:
        None; ours: the metric is computed on the columns of each group.

    Example:
        >>> from surelabel.metrics import brier
        >>> groups = {"base": [0], "new": [1]}
        >>> metric_per_class_group(brier, [[0.5, 1.0]], [[1, 1]], None, groups)
        {'base': 0.25, 'new': 0.0}
    """
    p = np.asarray(probabilities)
    y, known = validate_target_arrays(targets, known)
    check_shapes(probabilities=(p, "n c"), targets=(y, "n c"))
    metric_values = {}
    for name, group in groups.items():
        columns = _validate_class_group_columns(name, group, y.shape[1])
        metric_values[name] = float("nan")
        if columns.size:
            metric_values[name] = metric(p[:, columns], y[:, columns], known[:, columns])
    return metric_values


def base_and_new_metric(
    metric: Callable[..., float],
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    new: Sequence[int] | ColumnIndices,
) -> BaseAndNew:
    """Compute a metric for base classes and for new classes, and the means of the two values.

    Args:
        metric: Metric of the table ``POOLED``, or a function with the same arguments.
        probabilities: Probabilities or scores of n images and c classes, as the metric requires,
            ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        new: Column indices of the classes without labelled training images. The other columns are
            base classes.

    Returns:
        Metric of the base classes, metric of the new classes, and harmonic and arithmetic mean of
        the two values. If a group is empty or the metric is undefined, the value is NaN.

    Raises:
        InputError: If a column does not exist, the shapes differ, or the metric raises an
            InputError.

    Source:
        Xian, Schiele and Akata, Zero-Shot Learning: The Good, the Bad and the Ugly, CVPR 2017,
        arXiv:1703.04394, for the harmonic mean. The arithmetic mean, for metrics that are errors,
        is ours.

    Example:
        >>> from surelabel.metrics import accuracy
        >>> of = base_and_new_metric(accuracy, [[0.9, 0.9], [0.1, 0.9]], [[1, 1], [0, 0]], new=[1])
        >>> of.base, of.new, round(of.harmonic_mean, 4), of.arithmetic_mean
        (1.0, 0.5, 0.6667, 0.75)
    """
    y, known = validate_target_arrays(targets, known)
    new_columns = _validate_class_group_columns("new", new, y.shape[1])
    groups = {"base": np.setdiff1d(np.arange(y.shape[1]), new_columns), "new": new_columns}
    of_group = metric_per_class_group(metric, probabilities, y, known, groups)
    return BaseAndNew(of_group["base"], of_group["new"])


def _validate_class_group_columns(
    name: str, columns: Sequence[int] | ColumnIndices, n_classes: int
) -> ColumnIndices:
    """Return the column indices, sorted and without duplicates."""
    array = np.asarray(columns)
    indices = np.unique(array).astype(np.intp)
    if not indices.size:
        return indices
    if array.dtype.kind not in "iu" or indices[0] < 0 or indices[-1] >= n_classes:
        raise InputError(
            f"columns of {name} must be whole numbers from 0 to {n_classes - 1}; got "
            f"{array.tolist()}. Convert a mask to columns with numpy.flatnonzero."
        )
    return indices
