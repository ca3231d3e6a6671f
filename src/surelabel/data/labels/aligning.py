"""The labels of one vocabulary as targets for another."""

from collections.abc import Mapping, Sequence

import numpy as np

from surelabel.errors import InputError
from surelabel.records import LabelledImages


def align(
    labelled: LabelledImages,
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> tuple[LabelledImages, list[str]]:
    """Give the targets of ``names``, found among the labels by any of their spellings.

    Labels, like names, may hold several spellings, as in ``sofa|couch``. Case and surrounding
    spaces do not matter. When several labels spell one name, it is as present as the most
    present of them; it is unknown where one of them is unknown and none is 1.

    Args:
        labelled: Pictures with labels of their own.
        names: The vocabulary wanted, one column each.
        aliases: All spellings of a name, as :func:`checked_names` gives them.

    Returns:
        The same pictures with one column a name, unknown throughout for a name that no
        label spells; and the labels that spell no name and were dropped.

    Raises:
        InputError: one label spells two of the names.

    Example:
        >>> found = LabelledImages(["a.jpg"], ["couch", "lamp"], [[1, 0]])
        >>> aligned, dropped = align(found, ["sofa", "dog"], {"sofa": ("sofa", "couch")})
        >>> aligned.targets.tolist(), aligned.known.tolist(), dropped
        ([[1.0, 0.0]], [[True, False]], ['lamp'])
    """
    columns: dict[str, list[int]] = {}
    for column, label in enumerate(labelled.names):
        for spelling in _spellings(label):
            columns.setdefault(spelling, []).append(column)
    targets = np.zeros((len(labelled), len(names)))
    known = np.zeros(targets.shape, dtype=bool)
    used: dict[int, str] = {}
    for place, name in enumerate(names):
        spellings = _spellings(name, *(aliases or {}).get(name, ()))
        found = sorted({column for s in spellings for column in columns.get(s, ())})
        for column in found:
            _check_one_name(labelled.names[column], used.setdefault(column, name), name)
        if found:
            targets[:, place] = labelled.targets[:, found].max(axis=1)
            known[:, place] = labelled.known[:, found].all(axis=1) | (targets[:, place] == 1)
    dropped = [label for column, label in enumerate(labelled.names) if column not in used]
    return LabelledImages(labelled.paths, list(names), targets, known), dropped


def _spellings(*names: str) -> set[str]:
    return {spelling.strip().casefold() for name in names for spelling in name.split("|")}


def _check_one_name(label: str, first: str, name: str) -> None:
    if first != name:
        raise InputError(
            f"a label must spell one name. {label!r} spells two names, {first!r} and {name!r}: "
            "take one spelling out of the label, or make one name of the two."
        )
