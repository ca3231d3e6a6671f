"""List of everyday nouns that zero-shot scores use as reference.

The cosine similarities of some images are high for every text. Zero-shot scores therefore compare
the similarity of a label with the similarities of everyday nouns. The list of nouns is fixed, so
zero-shot scores do not depend on the other labels of the user.
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
