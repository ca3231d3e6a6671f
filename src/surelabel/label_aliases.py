r"""Split and join the aliases of a label: ``sofa|couch`` is one label with two spellings.

A ``|`` that belongs to a label is written ``\|``: ``either\|or`` is the label ``either|or``.
"""

import re
from collections.abc import Sequence

_SEPARATOR = re.compile(r"(\\*)\|")
_LAST_BACKSLASHES = re.compile(r"\\+$")
_DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class LiteralLabel(str):
    """Label without aliases, in which ``|`` is an ordinary character.

    Readers of annotation files return literal labels, because a column or category has one name.
    """

    __slots__ = ()


def split_label_aliases(label: str) -> tuple[str, ...]:
    r"""Return the spellings of a label without surrounding spaces, at least one.

    Args:
        label: Spellings separated by ``|``, or one spelling as a ``LiteralLabel``.

    Example:
        >>> split_label_aliases("sofa | couch"), split_label_aliases("either\\|or")
        (('sofa', 'couch'), ('either|or',))
        >>> split_label_aliases(LiteralLabel("either|or"))
        ('either|or',)
    """
    if isinstance(label, LiteralLabel) or "|" not in label:
        return (label.strip(),)
    spellings, position = [""], 0
    for match in _SEPARATOR.finditer(label):
        n_backslashes = len(match[1])  # two backslashes represent one backslash
        spellings[-1] += label[position : match.start()] + "\\" * (n_backslashes // 2)
        if n_backslashes % 2:
            spellings[-1] += "|"
        else:
            spellings.append("")
        position = match.end()
    spellings[-1] += label[position:]
    return tuple(spelling.strip() for spelling in spellings)


def join_label_aliases(spellings: Sequence[str]) -> str:
    r"""Return the spellings of a label as one string, which ``split_label_aliases`` can split.

    Example:
        >>> print(join_label_aliases(["sofa", "couch"]), join_label_aliases(["either|or"]))
        sofa|couch either\|or
    """
    escaped = [_SEPARATOR.sub(lambda match: rf"{match[1] * 2}\|", text) for text in spellings]
    *first, last = escaped
    return "|".join(
        [*(_LAST_BACKSLASHES.sub(lambda match: match[0] * 2, text) for text in first), last]
    )


def remove_direction_marks(label: str) -> str:
    r"""Return a label without the invisible Unicode marks for the writing direction.

    Example:
        >>> remove_direction_marks("\u200fdog\u200f")
        'dog'
    """
    return _DIRECTION_MARKS.sub("", label)


def comparable_spelling(spelling: str) -> str:
    r"""Return a spelling in the form for comparisons: case-folded, without direction marks.

    Example:
        >>> comparable_spelling("Dog\u200f")
        'dog'
    """
    return remove_direction_marks(spelling).casefold()


def list_labels(labels: Sequence[str]) -> str:
    """Return labels on one line, separated by commas; a label that contains a comma is quoted.

    Example:
        >>> list_labels(["dog", "salt, pepper"])
        "dog, 'salt, pepper'"
    """
    return ", ".join(repr(label) if "," in label else label for label in labels)
