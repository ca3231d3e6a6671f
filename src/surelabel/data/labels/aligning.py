"""The labels of one vocabulary as targets for another."""

from collections.abc import Mapping, Sequence

import numpy as np

from surelabel.records import LabelledImages


def align(
    labelled: LabelledImages,
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> tuple[LabelledImages, list[str]]:
    """Give the targets of ``names``, found among the labels by any of their spellings.

    Case and surrounding spaces do not matter. When several labels spell one name, it is
    as present as the most present of them; it is unknown where one of them is unknown
    and none is 1.

    Args:
        labelled: Pictures with labels of their own.
        names: The vocabulary wanted, one column each.
        aliases: All spellings of a name, as :func:`checked_names` gives them.

    Returns:
        The same pictures with one column a name, unknown throughout for a name that no
        label spells; and the labels that spell no name and were dropped.

    Example:
        >>> found = LabelledImages(["a.jpg"], ["couch", "lamp"], [[1, 0]])
        >>> aligned, dropped = align(found, ["sofa", "dog"], {"sofa": ("sofa", "couch")})
        >>> aligned.targets.tolist(), aligned.known.tolist(), dropped
        ([[1.0, 0.0]], [[True, False]], ['lamp'])
    """
    columns: dict[str, list[int]] = {}
    for column, label in enumerate(labelled.names):
        columns.setdefault(_folded(label), []).append(column)
    targets = np.zeros((len(labelled), len(names)))
    known = np.zeros(targets.shape, dtype=bool)
    used: set[int] = set()
    for place, name in enumerate(names):
        spellings = dict.fromkeys(map(_folded, (name, *(aliases or {}).get(name, ()))))
        found = [column for spelling in spellings for column in columns.get(spelling, ())]
        if found:
            used.update(found)
            targets[:, place] = labelled.targets[:, found].max(axis=1)
            known[:, place] = labelled.known[:, found].all(axis=1) | (targets[:, place] == 1)
    dropped = [label for column, label in enumerate(labelled.names) if column not in used]
    return LabelledImages(labelled.paths, list(names), targets, known), dropped


def _folded(name: str) -> str:
    return name.strip().casefold()
