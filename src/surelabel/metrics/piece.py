"""Calibration error that looks apart at pictures in a crowd and at outliers: PIECE, two readings.

What both hide less than ECE: too sure of outliers and not sure enough of the usual, which cancel
in a bin of probabilities alone.
"""

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.equal_mass import equal_mass
from surelabel.metrics.proximity import similarities
from surelabel.metrics.ratio import ratio
from surelabel.metrics.reliability import reliability
from surelabel.metrics.whole import whole
from surelabel.shapes import check_shapes

ROUNDING = 1e-12  # cosines that differ by less are of the same picture twice


def piece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    proximity: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 10,
    groups: int = 10,
) -> float:
    """Proximity-informed calibration error: ``ece`` in cells of proximity and probability.

        PIECE = Σ_g Σ_b  n_gb / n · |accuracy_gb - confidence_gb|

    Never below ``ece`` with the same bins. Splitting makes cells small, so chance makes it larger:
    compare it with its own noise,
    ``noise_floor(lambda p, y, known: piece(p, y, near, known), probabilities)``.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        proximity: What ``proximity`` gives, or any other number of each picture, ``(n,)``; all
            labels of a picture share it.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        bins: Bins of equal width on [0, 1], the last one closed, >= 1.
        groups: Groups of about as many pictures each, by proximity, >= 1; ties stay together.

    Returns:
        A number in [0, 1], 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, a probability or target is outside [0, 1], or a proximity is not
            finite.
        ConfigError: ``bins`` or ``groups`` is not a whole number of at least 1.

    Source:
        Xiong et al., Proximity-Informed Calibration for Deep Neural Networks, NeurIPS 2023,
        arXiv:2306.04590; read for labels of which a picture has several.

    Example:
        >>> round(piece([[0.5], [0.5]], [[0], [1]], [0.2, 0.9], groups=2), 4)
        0.5
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    near = np.asarray(proximity, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), proximity=(near, "n"))
    if not np.isfinite(near).all():
        raise InputError(
            f"proximity must be finite numbers. Got {(~np.isfinite(near)).sum()} that are not; "
            f"drop those pictures."
        )
    bins, groups = whole("bins", bins), whole("groups", groups)
    judged = known.any(axis=1)
    p, y, known, near = p[judged], y[judged], known[judged], near[judged]
    group = equal_mass(near, groups)
    wrong = 0.0
    for rows in (group == g for g in np.unique(group)):
        cells = reliability(p[rows], y[rows], known[rows], bins=bins)
        wrong += float(np.nansum(cells.counts * cells.gaps))
    return float(ratio(wrong, known.sum()))


def piece_of_neighbours(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    features: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    neighbours: int = 10,
) -> float:
    """Mean over pictures of how far probabilities are from the truth among their neighbours.

        mean over pictures i of  |accuracy(N(i)) - confidence(N(i))|

    accuracy and confidence are means over all known decisions of the pictures in N(i), whatever
    their probability.

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        features: One vector a picture, any length but zero, ``(n, d)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        neighbours: Nearest other pictures by cosine, >= 1; all of them where there are fewer, and
            more where several tie for the last place. Pictures of which nothing is known are none.

    Returns:
        A number in [0, 1], 0 is best; NaN when fewer than two pictures have known decisions.

    Raises:
        InputError: shapes differ, a probability or target is outside [0, 1], or a feature is zero.
        ConfigError: ``neighbours`` is not a whole number of at least 1.

    Source:
        The supplement of Class-wise Covariance Regularization, section C, where it is called PIECE;
        it says neither how many neighbours nor which labels. Ten and all labels are our reading.

    Example:
        >>> features = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> round(
        ...     piece_of_neighbours(
        ...         [[0.5], [0.5], [0.5], [0.5]], [[1], [1], [0], [0]], features, neighbours=1
        ...     ),
        ...     4,
        ... )
        0.5
    """
    p, y, known = checked_probabilities(probabilities, targets, known)
    count = whole("neighbours", neighbours)
    vectors = np.asarray(features, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), features=(vectors, "n d"))
    judged = known.any(axis=1)
    excess = np.where(known, p - y, 0).sum(axis=1)[judged]
    decisions = known.sum(axis=1)[judged].astype(float)
    last = min(count, len(excess) - 1)
    if last < 1:
        return float("nan")
    gaps = []
    for cosines in similarities(vectors[judged]):
        near = cosines >= np.partition(cosines, -last, axis=1)[:, [-last]] - ROUNDING
        gaps.append(np.abs(near @ excess) / (near @ decisions))
    return float(np.concatenate(gaps).mean())
