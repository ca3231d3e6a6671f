"""Detect defects of published annotations: labels that are identical in all images, and others."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count


def identical_labels(names: Sequence[str], targets: Array) -> Iterator[str]:
    """Yield a sentence for each group of labels that are identical in all images.

    Labels with fewer than two positive images are left out.

    Args:
        names: Labels, length c.
        targets: Targets, ``(n, c)``.
    """
    groups: dict[bytes, list[int]] = defaultdict(list)
    for column in range(len(names)):
        positive = targets[:, column] == 1
        if positive.sum() > 1:
            groups[np.packbits(positive).tobytes()].append(column)
    for columns in groups.values():
        if len(columns) > 1:
            n_positive = int((targets[:, columns[0]] == 1).sum())
            yield (
                f"The labels {', '.join(names[column] for column in columns)} are identical in "
                f"{format_count(len(targets), 'image')}, with "
                f"{format_count(n_positive, 'positive image')} each."
            )


def labels_outside_frequency(
    names: Sequence[str], targets: Array, seen: Collection[str]
) -> Iterator[str]:
    """Yield a sentence if the seen labels are not the most frequent labels.

    If a seen label is not in ``names``, nothing is yielded.

    Args:
        names: Labels, length c.
        targets: Targets of the training images, ``(n, c)``.
        seen: Seen labels.
    """
    if not {*seen} <= {*names}:
        return
    counts = dict(zip(names, (targets == 1).sum(axis=0).tolist(), strict=True))
    rarest = min(seen, key=counts.__getitem__)
    other = max((name for name in names if name not in seen), key=counts.__getitem__)
    if counts[other] > counts[rarest]:
        yield (
            f"The seen labels are not the most frequent ones: {other} is unseen and has "
            f"{format_count(counts[other], 'positive image')}, and {rarest} is seen and has "
            f"{counts[rarest]:,}."
        )
