"""The fixed list of everyday names that zero-shot scores are measured against.

A cosine means little alone: some pictures are near to every text. What counts is how much nearer
a name is than everyday names are, and that list must not change with the user's own names.
"""

from functools import cache
from importlib.resources import files


@cache
def reference_names() -> tuple[str, ...]:
    """About 400 everyday nouns, in a fixed order.

    Example:
        >>> reference_names()[:3]
        ('lion', 'tiger', 'elephant')
    """
    text = files("surelabel.backbones").joinpath("reference.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
