"""Define the last step of a calibration: the projection of log-odds to a tree of labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.calibration import isotonic_logits
from surelabel.encoders import Encoder
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.errors import DataError
from surelabel.metrics import METRICS
from surelabel.records import NO_PARENT, LabelTree, order_of_descent

METRICS_OF_GROUPS = ("log_loss", "brier_skill", "ece")

GroupMetrics = Mapping[str, tuple[float, float]]  # metric -> before and after the projection


@dataclass(frozen=True)
class LabelTreeProjection:
    """Projection of log-odds, after which no label is more probable than its parent.

    Attributes:
        parent_columns: Column of the parent of each label, or -1 without a parent, length c.
        leaves: Metrics of the labels of the tree without children, before and after the projection.
            They are computed from cross-fitted log-odds of the calibration images. If there is no
            validation record with labels, the mapping is empty.
        parents: Metrics of the labels of the tree with children.
    """

    parent_columns: tuple[int, ...]
    leaves: GroupMetrics = field(default_factory=dict)
    parents: GroupMetrics = field(default_factory=dict)

    def logits(self, logits: Array) -> Array:
        """Return the nearest log-odds ``(n, c)`` in which no label exceeds its parent."""
        return isotonic_logits(logits, np.array(self.parent_columns, dtype=np.intp))

    @classmethod
    def of_labels(
        cls, tree: LabelTree | None, names: Sequence[str]
    ) -> "LabelTreeProjection | None":
        """Return the projection of a tree of labels, or None without a tree.

        Args:
            tree: Tree whose labels are in ``names``, or None.
            names: Labels of the columns, length c.

        Raises:
            InputError: If a label of the tree is not in ``names``.
        """
        return cls(tuple(tree.parent_columns(names).tolist())) if tree else None

    def measured(self, logits: Array, targets: Array, known: Flags) -> "LabelTreeProjection":
        """Return the projection with the metrics of leaves and parents.

        Args:
            logits: Cross-fitted log-odds of n images before the projection, ``(n, c)``.
            targets: Targets in [0, 1], ``(n, c)``.
            known: True where the target is known, ``(n, c)``.
        """
        parents = sorted(set(self.parent_columns) - {NO_PARENT})
        leaves = [
            column
            for column, parent in enumerate(self.parent_columns)
            if parent != NO_PARENT and column not in parents
        ]
        before, after = expit(logits), expit(self.logits(logits))

        def metrics_of(columns: list[int]) -> GroupMetrics:
            group = targets[:, columns], known[:, columns]
            return {
                name: (
                    float(METRICS[name](before[:, columns], *group)),
                    float(METRICS[name](after[:, columns], *group)),
                )
                for name in METRICS_OF_GROUPS
            }

        return LabelTreeProjection(self.parent_columns, metrics_of(leaves), metrics_of(parents))

    def without_metrics(self) -> "LabelTreeProjection":
        """Return the projection without metrics, for other log-odds or images."""
        return LabelTreeProjection(self.parent_columns)

    def state(self) -> dict[str, Any]:
        """Return the projection as a JSON object."""
        state: dict[str, Any] = {"parents": list(self.parent_columns)}
        for group in ("leaves", "parents"):
            metrics = getattr(self, group)
            if metrics:
                state[f"metrics_of_{group}"] = {
                    name: [None if np.isnan(value) else value for value in values]
                    for name, values in metrics.items()
                }
        return state

    @classmethod
    def restore(cls, state: Any) -> "LabelTreeProjection":
        """Return the projection of a JSON object.

        Raises:
            DataError: If a value is missing or invalid, or if a label is its own ancestor.
        """
        fields = state if isinstance(state, dict) else {}
        parents: Any = fields.get("parents")
        metrics = [fields.get(f"metrics_of_{group}", {}) for group in ("leaves", "parents")]
        if not _are_parent_columns(parents) or not all(map(_are_group_metrics, metrics)):
            raise DataError(
                "label_tree in calibration.json must contain the column of the parent of each "
                "label, or -1, without cycles, and two numbers for each metric; got "
                f"{str(state)[:200]}. Calibrate again."
            )
        metrics_of_leaves, metrics_of_parents = (
            {
                name: (_number_of_json(before), _number_of_json(after))
                for name, (before, after) in group.items()
            }
            for group in metrics
        )
        return cls(tuple(parents), metrics_of_leaves, metrics_of_parents)


def label_tree_of_encoder(encoder: Encoder, names: Sequence[str]) -> LabelTree | None:
    """Return the label tree of an exported file for some of its labels, or None.

    Args:
        encoder: Encoder, which is an exported file or not.
        names: Labels of the recognizer, length c.
    """
    if not isinstance(encoder, ExportedModel) or encoder.metadata.parents is None:
        return None
    return LabelTree(encoder.metadata.parents).restricted_to(names)


def _are_parent_columns(parents: Any) -> bool:
    """Return whether a value of a JSON file is a tree of columns."""
    if not isinstance(parents, list) or not all(type(parent) is int for parent in parents):
        return False
    if not all(NO_PARENT <= parent < len(parents) for parent in parents):
        return False
    return len(order_of_descent(parents)) == len(parents)


def _are_group_metrics(metrics: Any) -> bool:
    """Return whether a value of a JSON file contains two numbers or null for each metric."""
    return isinstance(metrics, dict) and all(
        name in METRICS_OF_GROUPS and _are_two_numbers(values) for name, values in metrics.items()
    )


def _number_of_json(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _are_two_numbers(values: Any) -> bool:
    return (
        isinstance(values, Sequence)
        and len(values) == 2
        and all(value is None or type(value) in (int, float) for value in values)
    )
