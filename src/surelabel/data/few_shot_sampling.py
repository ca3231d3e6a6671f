"""Sample few-shot training sets from annotated images with several labels per image."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags, validate_target_arrays
from surelabel.errors import ConfigError

QUOTED_LABELS = 8  # maximum number of labels that a sentence names


def sample_shots(
    targets: npt.ArrayLike, known: npt.ArrayLike | None, shots: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Sample images until each label has at least ``shots`` positive images, if available.

    The labels are processed in increasing order of their number of positive images, and labels with
    equal numbers in the order of the columns. For each label, positive images are sampled without
    replacement until ``shots`` of its images are in the sample. An image that was sampled for one
    label also counts for its other labels, so frequent labels can have more than ``shots`` images.

    Args:
        targets: Targets in [0, 1] of n images and c labels, ``(n, c)``; at least 0.5 is positive.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known. Images without a known positive target are not sampled.
        shots: Number of images per label, >= 1.
        rng: Random number generator.

    Returns:
        Row indices of the sampled images in increasing order. If a label has fewer than ``shots``
        images, all of them are in the sample.

    Raises:
        InputError: If the shapes differ, or if a known target is outside [0, 1].
        ConfigError: If ``shots`` is less than 1.

    Source:
        None; ours. Papers on prompt tuning with several labels per image do not state their
        sampling scheme.

    Example:
        >>> targets = [[1, 0], [1, 1], [1, 0], [0, 0]]
        >>> sample_shots(targets, None, 1, np.random.default_rng(0)).tolist()
        [1]
    """
    if shots < 1:
        raise ConfigError(f"shots must be 1 or more; got {shots}.")
    is_positive = _positive_shot_flags(targets, known)
    is_sampled = np.zeros(len(is_positive), dtype=bool)
    for column in np.argsort(is_positive.sum(axis=0), kind="stable"):
        candidates = np.flatnonzero(is_positive[:, column] & ~is_sampled)
        n_missing = shots - int((is_positive[:, column] & is_sampled).sum())
        if n_missing > 0:
            n_sampled = min(n_missing, len(candidates))
            is_sampled[rng.choice(candidates, n_sampled, replace=False)] = True
    return np.flatnonzero(is_sampled)


def describe_shots(
    names: Sequence[str],
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None,
    rows: npt.NDArray[np.int64],
    shots: int,
) -> list[str]:
    """Return sentences with the number of sampled images and the positive images of each label.

    Args:
        names: Labels, length c.
        targets: Targets in [0, 1] of all n images, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known.
        rows: Row indices of the sampled images.
        shots: Requested number of images per label.

    Returns:
        One sentence about the sample and one with the counts of all labels. Further sentences
        follow if labels have fewer than ``shots`` images, or none.

    Example:
        >>> targets, rows = [[1, 0], [1, 0], [0, 0]], np.array([0, 1])
        >>> for sentence in describe_shots(["dog", "cat"], targets, None, rows, 3):
        ...     print(sentence)
        Sampled 2 of 3 images; each label has 0 to 2 positive images (requested: 3).
        Positive images per label: dog 2, cat 0.
        Labels with fewer than 3 positive images, all of which are used: dog 2.
        Labels without a positive image: cat.
    """
    is_positive = _positive_shot_flags(targets, known)
    counts = is_positive[rows].sum(axis=0)
    totals = is_positive.sum(axis=0)
    by_label = [f"{name} {count}" for name, count in zip(names, counts.tolist(), strict=True)]
    sentences = [
        f"Sampled {len(rows):,} of {len(is_positive):,} images; each label has {counts.min()} to "
        f"{counts.max()} positive images (requested: {shots}).",
        f"Positive images per label: {', '.join(by_label)}.",
    ]
    if few := [by_label[column] for column in np.flatnonzero((totals > 0) & (totals < shots))]:
        sentences.append(
            f"Labels with fewer than {shots} positive images, all of which are used: "
            f"{_list_first_labels(few)}."
        )
    if without := [names[column] for column in np.flatnonzero(totals == 0).tolist()]:
        sentences.append(f"Labels without a positive image: {_list_first_labels(without)}.")
    return sentences


def _positive_shot_flags(targets: npt.ArrayLike, known: npt.ArrayLike | None) -> Flags:
    """Return where a target is known and at least 0.5, ``(n, c)``."""
    y, is_known = validate_target_arrays(targets, known)
    is_positive: Flags = is_known & (y >= 0.5)
    return is_positive


def _list_first_labels(items: Sequence[str]) -> str:
    rest = f" and {len(items) - QUOTED_LABELS} more" if len(items) > QUOTED_LABELS else ""
    return ", ".join(items[:QUOTED_LABELS]) + rest
