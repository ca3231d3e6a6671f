"""Load the reference list of common nouns for zero-shot scores.

Some images have a high cosine similarity to every text. Zero-shot scores therefore compare the
similarity of an image and a label with the similarities of the image and common nouns. The list of
nouns is fixed, so the score of a label does not depend on the other requested labels.
"""

from functools import cache
from importlib.resources import files


@cache
def reference_names() -> tuple[str, ...]:
    """Return about 400 common nouns in a fixed order.

    Example:
        >>> reference_names()[:3]
        ('lion', 'tiger', 'elephant')
    """
    text = files("surelabel.encoders.prompts").joinpath("reference.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
