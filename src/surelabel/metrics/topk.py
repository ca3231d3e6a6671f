"""Metrics of the k best labels of every picture.

Labels that tie for the last places share them equally: what is counted is the mean over all ways
to break the tie, so the answer depends neither on the order of the classes nor on chance.
"""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.blocks import blocks
from surelabel.metrics.checked import checked_scores
from surelabel.metrics.ratio import ratio
from surelabel.metrics.whole import whole
from surelabel.records import Array, Flags


def precision_at_k(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> float:
    """Share of present labels among the k best of every picture, all pictures together.

        P = hits / chosen

    Args:
        scores: Finite numbers, higher means more likely, ``(n, c)``.
        targets: 1 where present, 0 where absent, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; only such labels are ranked.
        k: Labels chosen in every picture, >= 1; all known labels where there are fewer.

    Returns:
        A number in [0, 1]; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or a score or a target is not what it must be.
        ConfigError: ``k`` is not a whole number of at least 1.

    Source:
        Overall precision at k (micro average); Gong et al., Deep Convolutional Ranking for
        Multilabel Image Annotation, arXiv:1312.4894.

    Differs:
        Ties share the last places equally.

    Example:
        >>> precision_at_k([[0.9, 0.8, 0.1]], [[1, 0, 1]], k=2)
        0.5
    """
    hits, chosen, _ = _counts(scores, targets, known, k)
    return float(ratio(hits.sum(), chosen.sum()))


def precision_at_k_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> Array:
    """``precision_at_k`` of every class, ``(c,)``; NaN for a class that is never chosen.

    Source:
        As ``precision_at_k``, counted class by class.
    """
    hits, chosen, _ = _counts(scores, targets, known, k)
    return ratio(hits, chosen)


def recall_at_k(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> float:
    """Share of the present labels that are among the k best, all pictures together.

        R = hits / present

    Args:
        scores: As for ``precision_at_k``.
        targets: As for ``precision_at_k``.
        known: As for ``precision_at_k``.
        k: As for ``precision_at_k``.

    Returns:
        A number in [0, 1]; NaN when nothing is present.

    Raises:
        InputError: as for ``precision_at_k``.
        ConfigError: as for ``precision_at_k``.

    Source:
        As ``precision_at_k``.

    Example:
        >>> recall_at_k([[0.9, 0.8, 0.1]], [[1, 0, 1]], k=1)
        0.5
    """
    hits, _, present = _counts(scores, targets, known, k)
    return float(ratio(hits.sum(), present.sum()))


def recall_at_k_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> Array:
    """``recall_at_k`` of every class, ``(c,)``; NaN for a class without a known positive.

    Source:
        As ``recall_at_k``, counted class by class.
    """
    hits, _, present = _counts(scores, targets, known, k)
    return ratio(hits, present)


def f1_at_k(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> float:
    """Harmonic mean of precision and recall of the k best labels, all pictures together.

        F1 = 2 · hits / (chosen + present)

    Args:
        scores: As for ``precision_at_k``.
        targets: As for ``precision_at_k``.
        known: As for ``precision_at_k``.
        k: As for ``precision_at_k``.

    Returns:
        A number in [0, 1]; NaN when nothing is known.

    Raises:
        InputError: as for ``precision_at_k``.
        ConfigError: as for ``precision_at_k``.

    Source:
        As ``precision_at_k``.

    Example:
        >>> f1_at_k([[0.9, 0.8, 0.1]], [[1, 0, 1]], k=2)
        0.5
    """
    hits, chosen, present = _counts(scores, targets, known, k)
    return float(ratio(2 * hits.sum(), chosen.sum() + present.sum()))


def f1_at_k_per_class(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None, *, k: int = 3
) -> Array:
    """``f1_at_k`` of every class, ``(c,)``; NaN for a class neither present nor chosen.

    Source:
        As ``f1_at_k``, counted class by class.
    """
    hits, chosen, present = _counts(scores, targets, known, k)
    return ratio(2 * hits, chosen + present)


def _counts(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None, k: int
) -> tuple[Array, Array, Array]:
    """Hits, chosen and present labels of every class, each ``(c,)``."""
    k = whole("k", k)
    scores, present, known = checked_scores(scores, targets, known)
    best, counts = min(k, scores.shape[1]), np.zeros((3, scores.shape[1]))
    for block in blocks(scores, present, known) if best else ():
        counts += _counts_of_rows(*block, best=best)
    hits, chosen, there = counts
    return hits, chosen, there


def _counts_of_rows(scores: Array, present: Flags, known: Flags, *, best: int) -> Array:
    """Hits, chosen and present labels, ``(3, c)``."""
    ranked = scores if known.all() else np.where(known, scores, -np.inf)
    last = np.partition(ranked, -best, axis=1)[:, [-best]]
    chosen = (ranked >= last) & known
    tied = np.count_nonzero(chosen, axis=1) > best
    shares, hits = _shares(ranked[tied], present[tied], known[tied], last[tied], best)
    chosen[tied] = False
    shares += np.count_nonzero(chosen, axis=0)
    hits += np.count_nonzero(chosen & present, axis=0)
    return np.array([hits, shares, np.count_nonzero(present, axis=0)])


def _shares(
    ranked: Array, present: Flags, known: Flags, last: Array, best: int
) -> tuple[Array, Array]:
    """Chosen labels and hits, ``(c,)``, of rows where too many tie for the last places."""
    above, level = ranked > last, (ranked == last) & known
    places, ties = best - np.count_nonzero(above, axis=1), np.count_nonzero(level, axis=1)
    share = above + (places / ties)[:, None] * level
    return share.sum(axis=0), (share * present).sum(axis=0)
