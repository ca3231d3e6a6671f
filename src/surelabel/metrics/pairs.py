"""Are the probabilities of two labels together right? What a search for both builds on.

A search for "fork & knife" multiplies two probabilities, as if labels were independent given the
picture. Each may be calibrated by itself and their product still be wrong: here is by how much.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import Reliability, reliability
from surelabel.metrics.whole import whole
from surelabel.records import Array, Flags

CELLS = 1 << 20  # products held at a time, so that memory does not grow with the pairs

Columns = npt.NDArray[np.int64]


def pair_ece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    pairs: int = 5000,
    threshold: float = 0.0,
    seed: int = 0,
) -> float:
    """Calibration error of two labels together, over all pairs of labels of all pictures.

        for every i < j:   p_i · p_j   against   both are present

    It tells how wrong independence is, once the labels by themselves are calibrated. What
    independent and calibrated labels would show is ``noise_floor(pair_ece, probabilities)``.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``; a pair is known where both
            labels are.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.
        pairs: Most pairs of labels looked at, >= 1; drawn where there are more (101 labels or
            more).
        threshold: Least product that counts, in [0, 1]. Most pairs are plainly absent and make the
            error look small; 0.05 leaves those in question.
        seed: Of the draw of pairs.

    Returns:
        A number in [0, 1], 0 is best; NaN when no known pair reaches the threshold.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].
        ConfigError: ``bins`` or ``pairs`` is not a whole number of at least 1, or ``threshold``
            lies outside [0, 1].

    Source:
        None; ours: ``ece`` of the products by which Cheng and Vasconcelos, Towards Calibrated
        Multi-label Deep Neural Networks, CVPR 2024, section 5.3, rank pictures.

    Example:
        >>> round(pair_ece([[0.5, 0.5], [0.5, 0.5]], [[1, 1], [0, 0]]), 4)
        0.25
    """
    return _error(
        pair_reliability(
            probabilities, targets, known, bins=bins, pairs=pairs, threshold=threshold, seed=seed
        )
    )


def pair_ece_but_not(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    pairs: int = 10000,
    threshold: float = 0.0,
    seed: int = 0,
) -> float:
    """Calibration error of one label without another, over all pairs of labels of all pictures.

        for every i and j ≠ i:   p_i · (1 - p_j)   against   i is present and j absent

    Args:
        probabilities: As for ``pair_ece``.
        targets: As for ``pair_ece``.
        known: As for ``pair_ece``.
        bins: As for ``pair_ece``.
        pairs: As for ``pair_ece``; a pair counts in both directions.
        threshold: As for ``pair_ece``.
        seed: As for ``pair_ece``.

    Returns:
        A number in [0, 1], 0 is best; NaN when no known pair reaches the threshold.

    Raises:
        InputError: as for ``pair_ece``.
        ConfigError: as for ``pair_ece``.

    Source:
        As ``pair_ece``.

    Example:
        >>> round(pair_ece_but_not([[0.5, 0.5], [0.5, 0.5]], [[1, 1], [0, 0]]), 4)
        0.25
    """
    return _error(
        pair_reliability_but_not(
            probabilities, targets, known, bins=bins, pairs=pairs, threshold=threshold, seed=seed
        )
    )


def pair_reliability(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    pairs: int = 5000,
    threshold: float = 0.0,
    seed: int = 0,
) -> Reliability:
    """The bins behind ``pair_ece``, ``(bins,)``: how often both are there for a product of about p.

    Source:
        As ``pair_ece``.
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    classes = p.shape[1]
    chosen = _drawn(classes * (classes - 1) // 2, pairs, seed)
    second = np.floor((1 + np.sqrt(1 + 8 * chosen)) / 2).astype(np.int64)  # 01 02 12 03 13 23 …
    first = chosen - second * (second - 1) // 2
    return _pooled(_products((p, p), (y, y), known, first, second), bins, threshold)


def pair_reliability_but_not(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 15,
    pairs: int = 10000,
    threshold: float = 0.0,
    seed: int = 0,
) -> Reliability:
    """The bins behind ``pair_ece_but_not``, ``(bins,)``.

    Source:
        As ``pair_ece``.
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    classes = p.shape[1]
    chosen = _drawn(classes * (classes - 1), pairs, seed)
    first, second = np.divmod(chosen, max(classes - 1, 1))
    second += second >= first
    return _pooled(_products((p, 1 - p), (y, 1 - y), known, first, second), bins, threshold)


def _drawn(total: int, pairs: int, seed: int) -> Columns:
    """Numbers of pairs, all of them or some drawn ones."""
    if total <= whole("pairs", pairs):
        return np.arange(total)
    stream = np.random.default_rng(seed).spawn(1)[0]
    return np.sort(stream.choice(total, size=int(pairs), replace=False, shuffle=False))


def _products(
    p: tuple[Array, Array],
    y: tuple[Array, Array],
    known: Flags,
    first: Columns,
    second: Columns,
) -> Iterator[tuple[Array, Array, Flags]]:
    """Probability, target and known of some pairs at a time, each (n, some)."""
    step = max(CELLS // max(len(known), 1), 1)
    for start in range(0, max(len(first), 1), step):
        i, j = first[start : start + step], second[start : start + step]
        yield p[0][:, i] * p[1][:, j], y[0][:, i] * y[1][:, j], known[:, i] & known[:, j]


def _pooled(
    parts: Iterator[tuple[Array, Array, Flags]], bins: int, threshold: float
) -> Reliability:
    """One reliability of all parts."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a probability in [0, 1]. Got {threshold}.")
    sums = np.zeros((3, whole("bins", bins)))
    for p, y, known in parts:
        part = reliability(p, y, known & (p >= threshold), bins=bins)
        means = np.array([np.ones(bins), part.confidence, part.accuracy])
        sums += np.where(part.counts > 0, part.counts * means, 0.0)
    return Reliability(sums[0], ratio(sums[1], sums[0]), ratio(sums[2], sums[0]))


def _error(bins: Reliability) -> float:
    return float(ratio(np.nansum(bins.counts * bins.gaps), bins.counts.sum()))
