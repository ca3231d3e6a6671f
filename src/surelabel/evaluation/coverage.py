"""How well labelled pictures cover their labels."""

from dataclasses import dataclass

from surelabel.records import LabelledImages

NEXT = 5  # labels named that need more labelled pictures


@dataclass(frozen=True)
class Coverage:
    """How well labelled pictures cover their labels.

    Attributes:
        positives: Label → pictures that are known to have it.
        fewest: Labels with the fewest positives, those to label next.
    """

    positives: dict[str, int]
    fewest: list[str]


def coverage(labelled: LabelledImages) -> Coverage:
    """Count the positives of each label.

    Example:
        >>> from surelabel.records import LabelledImages
        >>> coverage(LabelledImages(["a.jpg", "b.jpg"], ["dog", "cat"], [[1, 0], [1, 1]]))
        Coverage(positives={'dog': 2, 'cat': 1}, fewest=['cat', 'dog'])
    """
    counts = ((labelled.targets >= 0.5) & labelled.known).sum(axis=0).tolist()
    positives = dict(zip(labelled.names, counts, strict=True))
    return Coverage(positives, sorted(positives, key=lambda name: positives[name])[:NEXT])
