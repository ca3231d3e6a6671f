"""Convert targets between vocabularies with different spellings."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from surelabel.errors import InputError
from surelabel.label_aliases import LiteralLabel, comparable_spelling, split_label_aliases
from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import LabelledImages


def align_to_vocabulary(
    labelled: LabelledImages,
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> tuple[LabelledImages, list[str]]:
    """Convert the targets of images to the vocabulary ``names`` by comparing spellings.

    Labels and names can have several spellings, as in ``sofa|couch``. Case, surrounding
    spaces and marks of the writing direction are ignored. A label of an annotation file, in which
    ``|`` is a character, is compared as a whole first. If several labels match a name, the target
    of the name is the maximum of the targets of these labels. The target of the name is unknown if
    a matching label is unknown and no matching label has the target 1.

    Args:
        labelled: Annotated images with the original labels.
        names: Labels of the new vocabulary.
        aliases: Mapping from names to all their spellings, as returned by
            :func:`parse_label_names`. If None, only the spellings in ``names`` are used.

    Returns:
        The images with one column per name, and the dropped labels, which match no name. If a name
        matches no label, the targets of the name are unknown.

    Raises:
        InputError: If a label matches two names.

    Example:
        >>> labelled = LabelledImages(["a.jpg"], ["couch", "lamp"], [[1, 0]])
        >>> aliases = {"sofa": ("sofa", "couch")}
        >>> aligned, dropped = align_to_vocabulary(labelled, ["sofa", "dog"], aliases)
        >>> aligned.targets.tolist(), aligned.known.tolist(), dropped
        ([[1.0, 0.0]], [[True, False]], ['lamp'])
    """
    spellings_of = [
        label_spellings_to_align(name, *map(LiteralLabel, (aliases or {}).get(name, ())))
        for name in names
    ]
    columns_of: dict[str, list[int]] = {}
    for column, spellings in enumerate(_spellings_of_columns(labelled.names, spellings_of)):
        for spelling in spellings:
            columns_of.setdefault(spelling, []).append(column)
    targets = mapped_zeros((len(labelled), len(names)), np.float64)
    known = mapped_zeros(targets.shape, bool)
    name_of: dict[int, str] = {}
    for index, name in enumerate(names):
        columns = sorted({column for s in spellings_of[index] for column in columns_of.get(s, ())})
        for column in columns:
            _check_single_alignment_match(
                labelled.names[column], name_of.setdefault(column, name), name
            )
        if columns:
            targets[:, index] = labelled.targets[:, columns].max(axis=1)
            known[:, index] = labelled.known[:, columns].all(axis=1) | (targets[:, index] == 1)
    dropped = [label for column, label in enumerate(labelled.names) if column not in name_of]
    aligned = LabelledImages(
        labelled.paths, list(names), targets, known, row_selection=labelled.row_selection
    )
    return aligned, dropped


def label_spellings_to_align(*names: str) -> set[str]:
    """Return all spellings of labels in the form of ``comparable_spelling``."""
    return {comparable_spelling(text) for name in names for text in split_label_aliases(name)}


def _spellings_of_columns(
    labels: Sequence[str], spellings_of_names: Sequence[set[str]]
) -> Iterator[set[str]]:
    """Yield the spellings of each label.

    A literal label is one spelling, if a name has this spelling. Otherwise, its parts are its
    spellings, so that the name ``sofa|couch`` with two spellings matches the column ``sofa|couch``.
    """
    all_spellings = set().union(*spellings_of_names)
    for label in labels:
        spellings = label_spellings_to_align(label)
        is_unmatched = isinstance(label, LiteralLabel) and not spellings & all_spellings
        yield label_spellings_to_align(str(label)) if is_unmatched else spellings


def _check_single_alignment_match(label: str, first: str, name: str) -> None:
    if first != name:
        raise InputError(
            f"A label must match only one name; got {label!r}, which matches {first!r} and "
            f"{name!r}. "
            "Remove a spelling from the label, or merge the two names."
        )
