"""Names held against each other, and how much of what can be reached at all is reached."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.metrics.ranking import average_precision_per_class
from surelabel.metrics.topk import (
    f1_at_k,
    precision_at_k,
    precision_at_k_per_class,
    recall_at_k,
    recall_at_k_per_class,
)
from surelabel.records import Array, Flags

Rows = npt.NDArray[np.intp]
PLACES = (3, 5)  # labels that a picture is shown with


@dataclass(frozen=True)
class AtK:
    """Of the k best labels of every picture; each in [0, 1], or NaN.

    Attributes:
        precision: Share of them that is present.
        recall: Share of what is present that is among them.
        f1: Harmonic mean of the two.
    """

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Standing:
    """What one ranking reaches.

    Attributes:
        best: k → all pictures and labels together (micro).
        class_means: k → means of precision and of recall over the classes where they are defined,
            and the harmonic mean of these two.
        mean_average_precision: Over classes with a positive.
        mean_average_precision_filled: Over all classes; one without a positive counts as 0.
    """

    best: Mapping[int, AtK]
    class_means: Mapping[int, AtK]
    mean_average_precision: float
    mean_average_precision_filled: float


@dataclass(frozen=True)
class Protocol:
    """Some names held against each other in some pictures.

    Attributes:
        names: Candidates in every picture.
        pictures: Pictures that count.
        labels: Candidates present, a picture; NaN without a picture.
        empty: Candidates that are present in none of them.
        found: What the scores reach.
        ceiling: What a perfect ranking reaches, which puts all that is present first, and shares
            the places left over equally. No ranking has a higher ``best`` or mAP; its
            ``class_means`` are no bound, because what fills the places left over may be chosen.
    """

    names: int
    pictures: int
    labels: float
    empty: int
    found: Standing
    ceiling: Standing


def protocol(scores: Array, present: Flags, known: Flags, *, rows: Rows, columns: Rows) -> Protocol:
    """Hold some names against each other in the pictures that count.

    Args:
        scores: Finite numbers, higher means more likely, ``(n, c)``.
        present: Which labels are there, ``(n, c)``; none that is not known.
        known: Which are known to be there or not, ``(n, c)``.
        rows: Pictures that count.
        columns: The candidates.

    Source:
        Overall precision, recall and F1 at k, and their class means, as in Gong et al., Deep
        Convolutional Ranking for Multilabel Image Annotation, arXiv:1312.4894; of unseen names:
        Huynh and Elhamifar, A Shared Multi-Attention Framework for Multi-Label Zero-Shot Learning,
        CVPR 2020. The ceiling: ours.
    """
    chosen = np.ix_(rows, columns)
    scores, present, known = scores[chosen], present[chosen], known[chosen]
    pictures = len(scores)
    return Protocol(
        names=len(columns),
        pictures=pictures,
        labels=float(present.sum() / pictures) if pictures else float("nan"),
        empty=int((~present.any(axis=0)).sum()),
        found=_standing(scores, present, known),
        ceiling=_standing(present.astype(np.float64), present, known),
    )


def _standing(scores: Array, present: Flags, known: Flags) -> Standing:
    given = scores, present, known
    each = average_precision_per_class(*given)
    return Standing(
        best={
            k: AtK(*(metric(*given, k=k) for metric in (precision_at_k, recall_at_k, f1_at_k)))
            for k in PLACES
        },
        class_means={k: _class_means(*given, k=k) for k in PLACES},
        mean_average_precision=_mean(each),
        mean_average_precision_filled=float(np.nan_to_num(each).mean()),
    )


def _class_means(scores: Array, present: Flags, known: Flags, *, k: int) -> AtK:
    precision = _mean(precision_at_k_per_class(scores, present, known, k=k))
    recall = _mean(recall_at_k_per_class(scores, present, known, k=k))
    both = precision + recall
    return AtK(precision, recall, 2 * precision * recall / both if both else both)


def _mean(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
