"""Describe annotated images in two lines: columns and labels, and counts of targets."""

from surelabel.counts import format_count
from surelabel.label_aliases import list_labels
from surelabel.records import LabelledImages

MAX_LABELS = 8  # labels that a description lists


def describe_labels(labelled: LabelledImages) -> tuple[str, str]:
    """Return how annotated images were read, and the counts of images and targets.

    Args:
        labelled: Annotated images, as returned by :func:`read_labels`.

    Returns:
        A line with the columns of a table and the first labels, and a line with the numbers of
        images and of positive, negative and unknown targets. A label that contains a comma is
        quoted.

    Example:
        >>> images = LabelledImages(["a", "b"], ["dog", "cat"], [[1, 0], [0.5, float("nan")]])
        >>> print(*describe_labels(images), sep=chr(10))
        2 labels: dog, cat.
        2 images; targets: 1 positive, 1 negative, 1 unknown, 1 between 0 and 1.
    """
    names = list_labels(labelled.names[:MAX_LABELS])
    names += ", …" if len(labelled.names) > MAX_LABELS else ""
    labels = f"{format_count(len(labelled.names), 'label')}: {names}."
    n_positive = int((labelled.targets == 1).sum())
    n_negative = int(((labelled.targets == 0) & labelled.known).sum())
    n_known = int(labelled.known.sum())
    counts = {
        "positive": n_positive,
        "negative": n_negative,
        "unknown": labelled.known.size - n_known,
        "between 0 and 1": n_known - n_positive - n_negative,
    }
    if not counts["between 0 and 1"]:
        del counts["between 0 and 1"]
    targets = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    return (
        f"{labelled.reading}; {labels}" if labelled.reading else labels,
        f"{format_count(len(labelled), 'image')}; targets: {targets}.",
    )
