"""How close a picture lies to others, in the space of its features."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.whole import whole
from surelabel.records import Array
from surelabel.shapes import check_shapes

ROWS = 256  # pictures compared at a time, so that memory does not grow with the data


def proximity(
    features: npt.ArrayLike, reference: npt.ArrayLike | None = None, *, neighbours: int = 10
) -> Array:
    """How near the nearest pictures of a reference are: near 1 in a crowd, small for an outlier.

        exp(-mean distance of the unit vector to its nearest ones)

    Args:
        features: One vector a picture, any length but zero, ``(n, d)``.
        reference: Vectors of held-out pictures, ``(r, d)``; when left out, the features themselves,
            each without itself.
        neighbours: How many nearest count, >= 1; all where there are fewer.

    Returns:
        ``(n,)`` in (0, 1]; NaN for a single picture without a reference.

    Raises:
        InputError: a vector is zero or not finite, widths differ, or the reference is empty.
        ConfigError: ``neighbours`` is not a whole number of at least 1.

    Source:
        Xiong et al., Proximity-Informed Calibration for Deep Neural Networks, NeurIPS 2023,
        arXiv:2306.04590.

    Differs:
        Their script takes squared distances and the mean of the exponentials; their paper and we,
        distances and the exponential of the mean. Bins by rank hardly see it.

    Example:
        >>> proximity([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 1.0]], neighbours=1)
        array([1., 1.])
        >>> proximity([[1.0, 0.0], [0.0, 2.0]]).round(4)
        array([0.2431, 0.2431])
    """
    count = whole("neighbours", neighbours)
    found = [np.empty(0)]
    for cosines in similarities(features, reference):
        nearest = min(count, cosines.shape[1])
        best = np.partition(cosines, -nearest, axis=1)[:, -nearest:]
        distances = np.sqrt(np.maximum(2 - 2 * best, 0))
        there = best > -np.inf
        total = np.where(there, distances, 0).sum(axis=1)
        found.append(np.exp(-total / np.where(there.any(axis=1), there.sum(axis=1), np.nan)))
    return np.concatenate(found)


def similarities(
    features: npt.ArrayLike, reference: npt.ArrayLike | None = None
) -> Iterator[Array]:
    """Cosines with every reference, ``(rows, r)``, some pictures at a time; -inf with itself.

    Raises:
        InputError: a vector is zero or not finite, widths differ, or the reference is empty.
    """
    own = unit_vectors("features", features)
    others = own if reference is None else unit_vectors("reference", reference)
    check_shapes(features=(own, "n d"), reference=(others, "r d"))
    if not len(others) and reference is not None:
        raise InputError("reference must have at least one vector. Got none; leave it out.")
    for start in range(0, len(own), ROWS):
        cosines = own[start : start + ROWS] @ others.T
        if reference is None:
            row = np.arange(len(cosines))
            cosines[row, start + row] = -np.inf
        yield cosines


def unit_vectors(name: str, vectors: npt.ArrayLike) -> Array:
    """Vectors made to length 1, ``(n, d)``.

    Raises:
        InputError: they have not two axes, or one is zero or not finite.
    """
    given = np.asarray(vectors, dtype=np.float64)
    check_shapes(**{name: (given, "n d")})
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    bad = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
    if bad.any():
        raise InputError(
            f"{name} must be finite vectors that are not zero. Got {bad.sum()} others, the first "
            f"in row {bad.argmax()}; drop those pictures."
        )
    return np.asarray(given / lengths)
