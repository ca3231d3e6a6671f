"""Count the positive images of each label (label coverage)."""

from dataclasses import dataclass

from surelabel.records import LabelledImages

MAX_RAREST_LABELS = 5  # labels that are suggested for more annotation


@dataclass(frozen=True)
class LabelCoverage:
    """Number of positive images of each label in a dataset.

    Attributes:
        positives: Number of positive images by label. A known target is positive if it is at least
            0.5.
        rarest_labels: At most 5 labels with the fewest positive images. Annotate more images
            of these labels first.
    """

    positives: dict[str, int]
    rarest_labels: list[str]


def measure_label_coverage(labelled: LabelledImages) -> LabelCoverage:
    """Count the positive images of each label.

    Example:
        >>> from surelabel.records import LabelledImages
        >>> dataset = LabelledImages(["a.jpg", "b.jpg"], ["dog", "cat"], [[1, 0], [1, 1]])
        >>> measure_label_coverage(dataset)
        LabelCoverage(positives={'dog': 2, 'cat': 1}, rarest_labels=['cat', 'dog'])
    """
    counts = ((labelled.targets >= 0.5) & labelled.known).sum(axis=0).tolist()
    positives = dict(zip(labelled.names, counts, strict=True))
    by_count = sorted(positives, key=lambda name: positives[name])
    return LabelCoverage(positives, by_count[:MAX_RAREST_LABELS])
