"""Read the label hierarchy of Open Images: a JSON tree of ``LabelName`` and ``Subcategory``."""

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json


@dataclass(frozen=True)
class LabelHierarchy:
    """Hierarchy of labels.

    Attributes:
        root: Label of the root of the tree, which includes all other labels.
        ancestors: The ancestors of each label. Every label of the hierarchy is a key.
    """

    root: str
    ancestors: dict[str, frozenset[str]]


def read_label_hierarchy(path: Path) -> LabelHierarchy:
    """Return the hierarchy of a JSON file in the layout of ``bbox_labels_600_hierarchy.json``.

    Each node is an object with ``LabelName`` and, optionally, the lists of nodes ``Subcategory``
    and ``Part``. A label is an ancestor of its subcategories, but not of its parts. A label can
    have several parents, if it is in several places of the tree.

    Args:
        path: Path of the file.

    Raises:
        DataError: If the file cannot be read or is not JSON, if a node is invalid, or if a label is
            its own ancestor. The message contains the position of the node.
    """
    tree = read_json(path, kind="a label hierarchy in JSON", remedy="Correct the file.")
    parents: dict[str, set[str]] = {}
    for label, parent in _edges_of_hierarchy(path, tree):
        parents.setdefault(label, set()).update([] if parent is None else [parent])
    try:
        order = list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        labels = " > ".join(map(quote_of_file, reversed(error.args[1])))
        raise DataError(
            f"{path}: a label must not be a subcategory of itself; got {labels}. Correct the file."
        ) from error
    ancestors: dict[str, frozenset[str]] = {}
    for label in order:  # each label is after its parents
        ancestors[label] = frozenset(parents[label]).union(*(ancestors[p] for p in parents[label]))
    return LabelHierarchy(tree["LabelName"], ancestors)


def _edges_of_hierarchy(path: Path, tree: Any) -> Iterator[tuple[str, str | None]]:
    """Yield the label of each node with its parent, which is None for the root and for parts.

    Raises:
        DataError: If a node is invalid.
    """
    nodes: list[tuple[str, Any, str | None]] = [("the root", tree, None)]
    while nodes:
        place, node, parent = nodes.pop()
        label = node.get("LabelName") if isinstance(node, dict) else None
        if not isinstance(label, str) or not label:
            raise DataError(
                f"{path}, {place}: a node must be an object with the text LabelName; got "
                f"{quote_of_file(node)}. Correct the file."
            )
        yield label, parent
        for key in ("Subcategory", "Part"):
            children = node.get(key, [])
            if not isinstance(children, list):
                raise DataError(
                    f"{path}, {place}: {key} must be a list of nodes; got "
                    f"{quote_of_file(children)}. Correct the file."
                )
            for number, child in enumerate(children):
                child_place = f"{key}[{number}] of {quote_of_file(label)}"
                nodes.append((child_place, child, label if key == "Subcategory" else None))
