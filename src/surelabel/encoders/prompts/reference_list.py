"""Fixed list of everyday nouns, the reference of zero-shot scores.

Cosines of some images are high for every text. Zero-shot scores therefore compare a label with
these nouns. The list does not depend on the labels of the user.
"""

from functools import cache
from importlib.resources import files


@cache
def reference_names() -> tuple[str, ...]:
    """Return about 400 everyday nouns in a fixed order.

    Example:
        >>> reference_names()[:3]
        ('lion', 'tiger', 'elephant')
    """
    text = files("surelabel.encoders.prompts").joinpath("reference.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
