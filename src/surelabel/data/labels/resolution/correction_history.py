"""Compute the current targets and the random sample of a file of corrections."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from surelabel.arrays import Array
from surelabel.data.labels.resolution.correction_rows import UNDO_PREFIX, CorrectionRow
from surelabel.records import RANDOM_ROW
from surelabel.storage.image_paths import is_object_url, join_image_path

LabelTargets = Mapping[str, float]  # 1 is positive, 0 is negative, NaN is unknown


@dataclass(frozen=True)
class CorrectionHistory:
    """Corrections of images, in the order in which they were recorded.

    Rows of an undone event have no effect. All paths are absolute.

    Attributes:
        rows: All rows in the order of the file, except the rows that undo other rows.
        undone: Events that were undone.
        targets: Last target of each corrected label, by path and label.
        sample_targets: Last target of each label that was recorded because the image belongs to the
            random sample, by path and label.
        sampled: Inclusion probability of each image of the random sample by path, in the order in
            which the images were sampled.
        chosen_by: How each image was chosen, by path, in the order of the first rows.
        sample_probability: Inclusion probability of the last extension of the random sample, which
            all its images have, or None without an extension.
    """

    rows: Sequence[CorrectionRow] = ()
    undone: frozenset[str] = frozenset()
    targets: Mapping[str, LabelTargets] = field(default_factory=dict)
    sample_targets: Mapping[str, LabelTargets] = field(default_factory=dict)
    sampled: Mapping[str, float] = field(default_factory=dict)
    chosen_by: Mapping[str, str] = field(default_factory=dict)
    sample_probability: float | None = None

    @classmethod
    def of_rows(cls, rows: Sequence[CorrectionRow], folder: Path) -> "CorrectionHistory":
        """Return the history of the rows of a file.

        Args:
            rows: Rows of the file.
            folder: Folder of the file, to which relative paths refer.
        """
        paths = {row.path: absolute_correction_path(folder, row.path) for row in rows}
        return cls().extended([row._replace(path=paths[row.path]) for row in rows])

    def extended(self, rows: Sequence[CorrectionRow]) -> "CorrectionHistory":
        """Return a history with further rows, whose paths are absolute."""
        undone = self.undone | {row.event.removeprefix(UNDO_PREFIX) for row in rows if row.is_undo}
        others = [row for row in rows if not row.is_undo]
        if undone != self.undone:  # the rows of an undone event can be anywhere
            return CorrectionHistory(undone=undone)._with_rows([*self.rows, *others])
        return self._with_rows(others)

    def _with_rows(self, rows: Sequence[CorrectionRow]) -> "CorrectionHistory":
        """Return a history with further rows that undo no event."""
        targets, sample_targets = (
            _MutableTargets(self.targets),
            _MutableTargets(self.sample_targets),
        )
        sampled, chosen_by = dict(self.sampled), dict(self.chosen_by)
        sample_probability = self.sample_probability
        for row in rows:
            if row.event and row.event in self.undone:
                continue
            chosen_by[row.path] = row.chosen_by
            if row.chosen_by == RANDOM_ROW:
                sampled[row.path] = row.inclusion_probability
            if row.is_sampling:
                sample_probability = row.inclusion_probability
                continue
            targets.set(row)
            if row.chosen_by == RANDOM_ROW:
                sample_targets.set(row)
        if sample_probability is not None:
            sampled = dict.fromkeys(sampled, sample_probability)
        return CorrectionHistory(
            [*self.rows, *rows],
            self.undone,
            targets.by_path,
            sample_targets.by_path,
            sampled,
            chosen_by,
            sample_probability,
        )

    @property
    def names(self) -> list[str]:
        """Return the corrected labels in the order of their first rows."""
        return list(
            dict.fromkeys(
                row.label
                for row in self.rows
                if row.label and not (row.event and row.event in self.undone)
            )
        )

    def is_complete(self, path: str, names: Collection[str]) -> bool:
        """Return whether an image of the random sample was checked for all labels.

        Args:
            path: Absolute path of the image.
            names: Labels.
        """
        recorded = self.sample_targets.get(path, {})
        return bool(recorded) and path in self.sampled and all(name in recorded for name in names)

    def complete_paths(self, names: Collection[str]) -> list[str]:
        """Return the paths of the images of the random sample that were checked for all labels."""
        return [path for path in self.sampled if self.is_complete(path, names)]


def target_array(
    targets: Mapping[str, LabelTargets], paths: Sequence[str], names: Sequence[str]
) -> Array:
    """Return the targets of n images and c labels, ``(n, c)``; NaN is unknown.

    Args:
        targets: Targets by path and label.
        paths: Paths of the images, length n.
        names: Labels, length c.

    Example:
        >>> target_array({"a.jpg": {"dog": 1.0}}, ["a.jpg", "b.jpg"], ["dog", "cat"]).tolist()
        [[1.0, nan], [nan, nan]]
    """
    array = np.full((len(paths), len(names)), np.nan)
    column_of = {name: column for column, name in enumerate(names)}
    for row, path in enumerate(paths):
        for name, target in targets.get(path, {}).items():
            if name in column_of:
                array[row, column_of[name]] = target
    return array


def absolute_correction_path(folder: Path, path: str) -> str:
    """Return the absolute path of an image of a file of corrections.

    Args:
        folder: Folder of the file, to which a relative path refers.
        path: Path of the image in the file.
    """
    joined = join_image_path(os.fspath(folder), path)
    return joined if is_object_url(joined) else os.path.abspath(joined)


class _MutableTargets:
    """Targets by path and label; the targets of a path are copied before their first change."""

    def __init__(self, by_path: Mapping[str, LabelTargets]) -> None:
        self.by_path: dict[str, LabelTargets] = dict(by_path)
        self._changed: dict[str, dict[str, float]] = {}

    def set(self, row: CorrectionRow) -> None:
        """Set the target of a row."""
        if row.path not in self._changed:
            self._changed[row.path] = dict(self.by_path.get(row.path, {}))
            self.by_path[row.path] = self._changed[row.path]
        self._changed[row.path][row.label] = row.target
